"""Words for secrets and words that describe them, in many languages: tables."""
# ruff: noqa: E501, RUF001 - letters of the far East count twice

from __future__ import annotations

from typing import Final

_PASSWORDS: Final = """
password passphrase passcode passwd pass-phrase pass_word pw pwd psw passwort kennwort netzwerkschlüssel
geheimwort codewort zugangswort passwörter losung zugangscode mot_de_passe mots_de_passe mdp phrase_secrète
contraseña contrasena clave contrasenya frase_secreta parola_d'ordine parola_chiave parola parolă parolayı
frase_segreta senha palavra-passe palavra_passe wachtwoord wachtwoorden hasło hasła hasłem haśle haslo
haslem пароль пароля паролем пароли парол кодовое_слово şifre şifresi şifren sifre parolas parolan parolay
parolam lösenord adgangskode kodeord passord salasana jelszó jelszav heslo hesla hesiel geslo lozink
slaptažod parole parool lykilorð κωδικός κωδικό_πρόσβασης סיסמה סיסמא كلمة_المرور كلمة_السر رمز_عبور पासवर्ड
รหัสผ่าน mật_khẩu kata_sandi kata_laluan nenosiri パスワード パスフレーズ パスコード パスは 合言葉 密码 密碼 口令 비밀번호 비번 패스워드 암호
"""
PASSWORDS: Final = tuple(_PASSWORDS.split())
"""An underscore stands for a space. A word with further letters after one of these is a form of it."""

_PLAIN_PASSWORDS: Final = """
pass unlock_phrase secret_phrase recovery_phrase pasword passwrod pswd passwrd paswort
"""
PLAIN_PASSWORDS: Final = tuple(_PLAIN_PASSWORDS.split())
"""Words and misspellings that count only in conversations."""

_CODES: Final = """
pin pincode pin-code pin_number pin_code pin-nummer geheimzahl geheimcode puk mtan smstan sms-tan code_pin
código_pin codice_pin kod_pin пин-код пинкод пин الرقم_السري 暗証番号 暗証コード 핀번호 otp one-time_code
one-time_password one_time_code 2fa_code 2fa mfa_code totp backup_code backup_codes recovery_code
recovery_codes restore_code rescue_code emergency_code scratch_code reset_code verification_code
verification_codes security_code access_code unlock_code door_code alarm_code gate_code einmalcode
einmalpasswort wiederherstellungscode backup-code backup-codes bestätigungscode sicherheitscode türcode
code_de_secours codes_de_secours code_de_récupération code_de_vérification code_d'accès code_de_sécurité
digicode código_de_recuperación código_de_verificación código_de_respaldo código_de_seguridad
código_de_acceso codigo_de código_de_recuperação código_de_verificação código_de_segurança códigos_de
codice_di_recupero codice_di_verifica codice_di_backup codici_di_recupero codici_di_backup
codice_di_sicurezza codice_di_sblocco herstelcode verificatiecode beveiligingscode toegangscode back-upcode
kod_zapasowy kody_zapasowe kod_odzyskiwania kod_weryfikacyjny kod_dostępu kod_do код_восстановления
код_подтверждения резервный_код резервные_коды код_доступа код_из_смс kurtarma_kodu doğrulama_kodu yedek_kod
onay_kodu güvenlik_kodu engångskod återställningskod pinkod portkod larmkod pinkoodi pinkode dørkode
tunnusluku リカバリーコード バックアップコード 認証コード 確認コード ワンタイム 验证码 驗證碼 恢复码 备用码 恢复代码 备份代码 安全码 인증번호 인증_코드 복구_코드 백업_코드 보안_코드
인증코드 복구코드 백업코드 combination kombination combinaison combinación combinazione keypad lock_code entry_code
safe_code code_for_the code_to_the code_confidentiel code_secret code_wifi código_secreto codice_segreto
kod_pin kod_do_bramy код_от код_домофона toegangspincode cvv cvc cvv2 cvc2 csc kartenprüfnummer prüfziffer
cryptogramme
"""
CODES: Final = tuple(_CODES.split())
"""Secrets that may consist of digits only."""

_KEYS: Final = """
key api-key secret token schlüssel clé clef chiave chave llave sleutel klucz ключ ключа токен anahtar
anahtarı anahtarım anahtari klucza klucze ключом ключи nyckeln sleutels nyckel nøgle avain キー 鍵 トークン 密钥 密鑰
秘钥 令牌 키 토큰
"""
KEYS: Final = tuple(_KEYS.split())
"""Words with many other meanings. A value after such a word is a secret only if it is random, or if one of
`NETWORKS` is near."""

NETWORKS: Final = ("wifi", "wi-fi", "wlan", "ssid", "wpa", "hotspot", "无线", "無線", "와이파이")

_LOGINS: Final = """
login log_in entra entrar accede connecte-toi logins basic_auth http_auth sign_in creds credentials account
zugangsdaten anmeldedaten zugang einloggen anmelden identifiants connexion credenciales acceso usuario
credenziali accesso utente credenciais acesso usuário inloggegevens inloggen dane_logowania zaloguj логин
доступ учётка учетка zайти giriş kullanıcı 账号 帳號 登录 ログイン アカウント 로그인 계정 vpn ftp sftp rdp
"""
LOGINS: Final = tuple(_LOGINS.split())
"""Words before a pair of user name and password with a separator between them."""

INTRODUCING: Final = (
    r"[:=\uff1a\u2192>\u00bb]|[-=]>|\s[\u2014\u2013-]|\bit'?s|\b(?:is|are|was|be|to|now|being|use|try"
    r"|enter|type|set"
    r"|still|always|remains|reads|called|jetzt|noch|ist|lautet|lauten|hei\u00dft|heisst|auf"
    r"|sind|war|jetzt|nimm"
    r"|est|c'est|c\u2019est|sont|par|devient|maintenant"
    r"|es|son|por|ahora|usa|ponle|pon|\u00e8|\u00e9|\u00e8:|ora|adesso|sono|s\u00e3o|ficou|para|agora"
    r"|naar|wordt|werd|nu|zijn|to|brzmi|jest|s\u0105|teraz|\u044d\u0442\u043e|\u043d\u0430"
    r"|\u0442\u0435\u043f\u0435\u0440\u044c|\u0442\u0430\u043a\u043e\u0439|\u0431\u0443\u0434\u0435\u0442"
    r"|\u00e4r|er|je|jsou|este|l\u00e0|adalah|olarak|\u015fu|art\u0131k|\u03b5\u03af\u03bd\u03b1\u03b9"
    r"|\u0939\u0948|\u05d4\u05d9\u05d0|\u05d4\u05d5\u05d0|\u0647\u064a|\u0647\u0648)"
    r"|(?:\u306f|\u304c|\u3092|\u662f|\u4e3a|\u70ba|\u6539\u6210|\u6539\u6210\u4e86|\u6539\u4e3a|\u6210"
    r"|\u6210\u4e86|\u8bbe\u4e3a|\u7528|\ub294|\uc740|\uac00|\uc774|\ub97c|\uc744)"
)
"""Text directly before a secret in a conversation."""

AS: Final = (
    r"as|als|como|comme|come|jako|som|kao|is|ist|est|es|for|pour|para|per|voor|dla|into"
    r"|как|è|é|für|для"
)
"""Words between a secret and a word for it that follows."""

_FUNCTION_WORDS: Final = """
the and for with that this from your you are not can will must should has have been was were they
their them then than when where what which who whom why how into onto over under about after before
between because while until all any each every some such only also just more most other same very
one two three four five use used using see new old our its his her she him get set put let may might
could would does did done here there please word words password passphrase passwords passcode phrase
key keys secret token string text letters numbers characters nicht und oder der die das den dem mit
von auf ist ein eine que les des une pour dans por los las una con para
"""
FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS.split())
"""A random passphrase has none of these."""

TECHNICAL: Final = (
    r"(?i:(?:ctrl|alt|cmd|shift|meta|esc|option|command)[-+].*|(?:sha|md|aes|rsa|utf|ipv|http"
    r"|https|oauth|rfc|iso|pkcs|base|pbkdf|argon|ed|ecdsa|python|py|ssl"
    r"|tls|tlsv|log|"
    r"postgres|mysql|sqlite|win|windows|ubuntu|debian|id|scram-sha|hmac-sha|cve|ldap|smtp|web"
    r"|ntlm|smb|wpa)"
    r"-?v?_?[0-9][\w.-]*)|v?[0-9]+(?:\.[0-9]+)+[\w.-]*|[A-Z][A-Z0-9]*(?:[-_][A-Z0-9]+)+"
    r"|[0-9]+[A-Za-z]{1,5}|0x[0-9a-fA-F]+"
    r"|(?!p@)[a-z]+@[a-z][\w.-]*|k8s|s3|ec2|h26[45]|x(?:509|86(?:_64)?|64)|[0-9]{4}-[0-9]{2}-[0-9]{2}.*"
    r"|[a-z][\w-]*@[0-9]{1,2}(?:\.[0-9.]+)?|[0-9]{1,2}[:h][0-9]{2}.*|[\w.+-]+@[\w-]+\.[\w.-]+"
    r"|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,5}[0-9]?(?::[0-9]+)?"
    r"|[\w./-]*/[\w./-]*|[A-Z]{2,10}-?[0-9]{1,6}|[#][0-9]+|[\w$.]+(?:->|::).*|[\w-]+=.*"
    r"|\w+\(.*|.*\\.*|[%&].*"
)
"""Programs, versions, files, hosts and times: they have digits or marks but are not secrets."""

_FOLLOWERS: Final = """
a an required incorrect wrong correct right invalid valid missing empty blank unset null none optional
mandatory necessary needed secret private public hidden visible plain plaintext cleartext long short too
very quite weak strong good better best fine okay ok bad old new same different equal identical unique
random unknown known lost safe secure insecure case sensitive case-sensitive encrypted hashed salted stored
saved kept asked read sent given taken used set reset changed expired locked blocked exposed leaked not
never always still only also just already again now then here there where when what who which why how
whatever something anything nothing somewhere someone one two some any all each every enough default
standard the this that these those your our their his her its mine yours it they you from with without for
about above below under over inside outside between before after until while because since like unlike near
behind beside next part field form page file text string number word words line value name user username
email hint prompt option flag argument parameter variable column policy manager hash type length minimum
maximum least most more less see check look ask find use using enter type click press open please sorry yes
true false working broken gone ready done down off out being been both either accepted rejected denied
allowed disabled enabled expected supposed going about able unable ignored protected generated managed
shared real fake dummy test todo tbd redacted masked string str bytes boolean char varchar nullable
undefined nil void auto automatic manual internal external global local temporary permanent final current
previous human readable printed written somehow obviously probably perhaps maybe important sensitive
critical crucial essential wherever however whoever neither nobody noone vague obsolete deprecated unclear
clear obvious simple complex alphanumeric numeric exactly roughly around falsch richtig leer nötig notwendig
pflicht zu nicht nie immer noch schon nur auch gleich anders unbekannt bekannt sicher unsicher schwach stark
lang kurz kürzer länger alt neu weg hier dort wo was wer wie das die der den dem ein eine mein dein unser
ihr sein im in am auf bei vom von mit ohne für seit gestern heute morgen hinterlegt korrekt pflichtfeld feld
campo champ поле pole alan veld hetzelfde dezelfde abgelaufen gesperrt gültig ungültig optional erforderlich
incorrect erroné faux bon vide requis obligatoire trop pas jamais toujours encore déjà très plus moins aussi
dans sur sous chez avec sans pour par depuis le la les un une mon ton son notre votre celui celle inconnu
connu sûr faible fort long court expiré bloqué valide invalide identique incorrecta incorrecto correcta
correcto errónea vacía requerida necesaria muy demasiado más menos no nunca siempre aún ya también en sobre
con sin para por desde el los las una uno mi tu su nuestra vuestra segura débil fuerte larga corta vieja
nueva caducada válida inválida única misma igual sbagliata errata corretta giusta vuota richiesta necessaria
troppo molto più meno non mai sempre ancora già anche nel nella sul sulla con senza per da il lo gli una mia
tua sua nostra vostra sicura debole forte lunga corta vecchia nuova scaduta valida quella questa stessa
uguale errada correta vazia necessária muito demais mais menos não nunca sempre ainda já também em no na num
numa com sem para por desde minha sua nossa segura fraca longa curta velha nova expirada válida inválida
mesma igual aquela essa esta verkeerd fout juist goed leeg nodig verplicht te niet nooit altijd nog al ook
onbekend bekend veilig zwak sterk lang kort oud nieuw hetzelfde in op bij met zonder voor van sinds de het
een mijn jouw ons onze verlopen geldig ongeldig błędne złe dobre poprawne puste wymagane za zbyt nie nigdy
zawsze jeszcze już też w na z bez dla od moje twoje nasze silne słabe długie krótkie stare nowe takie samo
inne jest неверный неправильный правильный пустой нужен нужно обязателен слишком не никогда всегда ещё еще
уже тоже в на с без для от мой твой наш свой этот тот такой старый новый слабый надёжный длинный короткий
истёк yanlış hatalı doğru boş gerekli zorunlu çok az değil hiç her hâlâ hala artık da bu şu o benim senin
bizim zayıf güçlü uzun kısa eski yeni aynı geçersiz geçerli fel rätt tomt krävs för inte aldrig alltid än
redan också i på med utan av sedan min ditt vår svagt starkt långt kort gammalt nytt samma giltigt ogiltigt
forkert feil påkrævet nødvendig väärä pakollinen oikea špatné správné prázdné povinné
"""
FOLLOWERS: Final = frozenset(_FOLLOWERS.split())
"""Words that describe a password."""

ENDINGS: Final = (
    r".{2,}(?:ed|ing|ly|able|ible|ous|less|ful|ory|ary|ive|n't"
    r"|ado|ada|ido|ida|ato|ata|uto|uta|[óo]ri[ao]|bile|vel|é|ée|oire"
    r"|(?:op|aan|af|uit|in|vast)ge\w+|lich|bar|los|haft|lijk|baar|ung|owe|owy|ane|one|ony|kie|ny|ste"
    r"|ый|ий|ой|ое|ая|ен|ан|ется|ится|ать|ить|ён|но"
    r"|lı|li|lu|lü|sız|siz|mış|miş|ıyor|iyor|malı|meli|nut|nuté|ní)"
    r"|(?:ge|ver|be|er|ent|zer)\w+(?:t|en|d)|(?:un|in|non|re|pre)-?\w+(?:ed|t|ct)"
)
"""Endings of words that describe a password, in lower case."""
