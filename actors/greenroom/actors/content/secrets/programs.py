"""How programs take a password on their command lines: a table from their manuals.

This module has only data; `commands` searches for it. Options with a clear name such as ``--password`` are
found without this table.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Program(NamedTuple):
    """Programs that take passwords in the same way; most members are lists separated by spaces.

    Attributes:
        follows: Words after which the next word is a password.
        joined: Options to which the password is joined.
        pairs: Options that take a pair of user and password, in the same word or as the next word.
        words: Subcommands. If there are any, one of them must come before the password.
        separator: The separator between user and password in a pair.
        leading: Whether words after the first one without a dash belong to another program.
    """

    names: str
    follows: str = ""
    joined: str = ""
    pairs: str = ""
    words: str = ""
    separator: str = ":"
    leading: bool = False


PROGRAMS: Final = (
    Program(
        "mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlpump mysqlslap mysqlsh mycli"
        " mariadb mariadb-dump mariadb-admin mariadb-import mariadb-check mydumper",
        joined="-p",
    ),
    Program("mysqladmin mariadb-admin", follows="password"),
    Program("sshpass", follows="-p", joined="-p", leading=True),
    Program("redis-cli valkey-cli keydb-cli", follows="-a --pass AUTH auth requirepass"),
    Program("docker podman nerdctl helm buildah oras crane regctl az oc", follows="-p", words="login"),
    Program("skopeo buildah podman", pairs="--creds --src-creds --dest-creds"),
    Program("openssl", follows="-k -K", joined="pass:"),
    Program("zip unzip zipcloak", follows="-P", joined="-P"),
    Program("7z 7za 7zr 7zz p7zip rar unrar", joined="-p -hp"),
    Program(
        "mongosh mongo mongodump mongorestore mongoexport mongoimport mongostat cqlsh beeline"
        " hydra medusa netexec nxc"
        " crackmapexec evil-winrm psexec psexec64 rdesktop hdbsql couchbase-cli cypher-shell"
        " rabbitmqadmin ncftp"
        " ncftpput ncftpget useradd usermod altool certutil smbmap steghide",
        follows="-p",
    ),
    Program("smbclient rpcclient smbget smbcacls smbtree net winexe wmic", pairs="-U --user", separator="%"),
    Program(
        "ldapsearch ldapadd ldapmodify ldapdelete ldappasswd ldapwhoami ldapcompare ldapmodrdn ldapvi vsql",
        follows="-w",
        joined="-w",
    ),
    Program("ldappasswd", follows="-s -a"),
    Program("sqlcmd osql bcp isql tsql sqsh", follows="-P", joined="-P"),
    Program("mosquitto_pub mosquitto_sub mosquitto_rr ipmitool", follows="-P"),
    Program("snmpwalk snmpget snmpset snmpgetnext snmpbulkwalk snmpbulkget", follows="-A -X -c"),
    Program("gpg gpg2", follows="--passphrase"),
    Program("curl", follows="--pass --proxy-pass", pairs="-u --user -U --proxy-user"),
    Program("http https httpie xh ab", pairs="-a -A --auth"),
    Program("wget", follows="--password --http-password --ftp-password --proxy-password"),
    Program("lftp", pairs="-u", separator=","),
    Program("etcdctl", pairs="--user"),
    Program("ssh-keygen", follows="-N -P"),
    Program(
        "keytool jarsigner",
        follows="-storepass -keypass -srcstorepass -deststorepass -srckeypass -destkeypass",
    ),
    Program("security", follows="-w", words="add-generic-password add-internet-password"),
    Program("security", follows="-p -P", words="unlock-keychain create-keychain import"),
    Program("xfreerdp xfreerdp3 wfreerdp", joined="/p:"),
    Program("cmdkey net", joined="/pass:"),
    Program("plink pscp psftp putty nzsql", follows="-pw"),
    Program("swaks sendemail", follows="-ap -xp --auth-password"),
    Program("twine", follows="-p", words="upload"),
    Program("gh", follows="-b --body", words="secret"),
    Program("nmcli", follows="password wifi-sec.psk 802-11-wireless-security.psk 802-1x.password wep-key"),
    Program("pdftk", follows="user_pw owner_pw input_pw"),
    Program("pdftotext pdftoppm pdfimages pdfinfo", follows="-upw -opw"),
    Program("ccrypt ccencrypt ccdecrypt", follows="-K"),
    Program("pk12util", follows="-W -K"),
    Program("signtool", follows="/p"),
    Program("dotnet nuget", follows="-k --api-key", words="push"),
    Program("kubectl oc", pairs="--from-literal", words="secret", separator="="),
    Program("wp drush", joined="--dbpass= --user_pass= --admin_password= --account-pass= --prompt="),
    Program("vncviewer x11vnc", follows="-passwd"),
    Program("influx", follows="-password"),
    Program("db2", follows="using", words="connect"),
    Program("doctl", follows="-t", words="init"),
    Program("ngrok", follows="authtoken add-authtoken"),
    Program("wandb", follows="login"),
    Program("vault cargo", follows="login"),
    Program("schtasks", follows="/rp /p"),
    Program("wmic", joined="/password:"),
    Program("bitcoin-cli litecoin-cli dogecoin-cli", follows="walletpassphrase encryptwallet"),
    Program("bw", follows="unlock"),
    Program("rclone", follows="obscure"),
    Program("nuget", follows="setapikey"),
)

_WORD: Final = r"(?:\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|[^\s\"'|;&-][^\s\"'|;&]{0,200})"
_VALUE: Final = r"(\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|[^\s\"'|;&<>-][^\s\"'|;&<>]{2,200})"
_OPTIONS: Final = r"(?:-\S{1,40} ){0,8}"

PLACES: Final = (
    ("htpasswd", rf"htpasswd {_OPTIONS}-[a-zA-Z]{{0,6}}nb[a-zA-Z]{{0,6}} {_OPTIONS}{_WORD} {_VALUE}"),
    (
        "htpasswd",
        rf"htpasswd {_OPTIONS}-(?!\w{{0,6}}n)\w{{0,6}}b\w{{0,6}} {_OPTIONS}{_WORD} {_WORD} {_VALUE}",
    ),
    ("wpa_passphrase", rf"wpa_passphrase {_WORD} {_VALUE}"),
    (
        "rabbitmqctl",
        rf"rabbitmqctl {_OPTIONS}(?:add_user|change_password|authenticate_user) {_WORD} {_VALUE}",
    ),
    ("net user", rf"net user {_WORD} {_VALUE}"),
    ("net use", rf"net use {_WORD} (?:{_WORD} )?(?!\\\\){_VALUE} /user:"),
    ("net use", rf"net use (?:{_WORD} ){{1,2}}/user:\S{{1,100}} (?!/){_VALUE}"),
    ("put", rf"\b(?:kv|etcdctl) put \S{{0,100}}(?i:pass|secret|token|key)\w{{0,20}} {_VALUE}"),
    (
        "-",
        (
            r"-[A-Z][A-Za-z]{0,30}(?:Password|Passphrase|Secret|Token|ApiKey)(?<=[a-z]) "
            r"(?:[\"']([^\s\"'$()]{4,100})[\"'])"
        ),
    ),
    (
        "-",
        (
            r"-[A-Z][A-Za-z]{0,30}(?:Password|Passphrase|Secret|Token|ApiKey) "
            r"(?=[^\s]{0,60}[0-9])([^\s\"'$()-][^\s\"'$()]{4,100})"
        ),
    ),
    (
        "<(",
        (
            r"(?i:pass|key|secret|token|cred|pw)[\w-]{0,20}[\x20=]{0,2}<\((?:echo|printf)(?: -\w+)? "
            r"[\"']?([^\s\"')]{3,100})"
        ),
    ),
    ("sqlplus", r"sqlplus (?:-\S+ ){0,4}[\"']?[\w.#$]{1,60}/([^\s@\"'/]{3,100})"),
    ("expdp", r"expdp [\"']?[\w.#$]{1,60}/([^\s@\"'/]{3,100})"),
    ("impdp", r"impdp [\"']?[\w.#$]{1,60}/([^\s@\"'/]{3,100})"),
    ("rman", r"rman (?:target|auxiliary) [\"']?[\w.#$]{1,60}/([^\s@\"'/]{3,100})"),
    ("http-basic.", rf"config [^\n]{{0,60}}?http-basic\.\S{{1,100}} {_WORD} {_VALUE}"),
    ("pypi-token.", rf"config pypi-token\.\S{{1,60}} {_VALUE}"),
    ("mc alias set", rf"mc alias set {_WORD} {_WORD} {_WORD} {_VALUE}"),
    ("user-secrets set", rf"user-secrets set {_OPTIONS}{_WORD} {_VALUE}"),
    ("bw login", rf"bw login {_WORD} {_VALUE}"),
    ("mkpasswd", rf"mkpasswd {_OPTIONS}{_VALUE}"),
    ("openssl passwd", rf"openssl passwd {_OPTIONS}{_VALUE}"),
    ("impacket-", r"impacket-\w{1,40} [^\n]{0,80}?[\w.\\/-]{1,60}:([^\s@\"']{3,100})@"),
    ("\\r", r"\bsend (?:-- )?\\?\"([^\"\\\n]{4,60})\\{1,2}r"),
    ("base64", r"echo (?:-n )?[\"']?([A-Za-z0-9+/]{12,400}={0,2})[\"']? ?\| ?base64 (?:-d|--decode|-D)"),
    ("qpdf", rf"qpdf [^\n]{{0,100}}?--encrypt {_VALUE} "),
    ("aws configure set", rf"aws configure set (?:\S*secret\S*|\S*token\S*) {_VALUE}"),
    ("SetPassword", r"SetPassword\([\"']([^\"'\n]{3,100})[\"']"),
    ("encrypt_string", rf"encrypt_string {_OPTIONS}{_VALUE}"),
    ("ConvertTo-SecureString", r"ConvertTo-SecureString ([^\s\"'$()-][^\s\"'()]{3,100}) -"),
    (
        "ConvertTo-SecureString",
        r"ConvertTo-SecureString (?:-\w{1,20} ){0,4}\\{0,2}[\"']([^\"'\n\\]{3,100})\\{0,2}[\"']",
    ),
)
"""Patterns of passwords by position, each with a part of the command; a space stands for any white space."""

OUTPUTS: Final = (
    (
        "kubectl",
        r"kubectl\b[^\n]{0,90}? get secrets? [^\n]{0,200}(?:jsonpath|template|base64)[^\n>]{0,200}",
    ),
    ("vault", r"vault (?:kv get|read) [^\n>]{0,40}-field[= ][^\n>]{0,200}"),
    ("pass show", r"pass show [^\n|>]{1,100}"),
    ("op read", r"op (?:read|item get) [^\n|>]{1,200}"),
    ("bw get", r"bw get (?:password|totp) [^\n|>]{1,100}"),
    ("find-generic-password", r"find-generic-password [^\n|>]{0,150}-w[^\n|>]{0,100}"),
    ("secrets versions access", r"secrets versions access [^\n|>]{1,200}"),
    ("keyvault secret show", r"keyvault secret show [^\n|>]{0,200}-o(?:utput)? tsv[^\n|>]{0,100}"),
    ("secretsmanager", r"secretsmanager get-secret-value [^\n|>]{0,200}text[^\n|>]{0,100}"),
    ("get-parameter", r"ssm get-parameter [^\n|>]{0,60}--with-decryption[^\n|>]{0,200}text[^\n|>]{0,100}"),
    ("pwgen", r"pwgen(?: [^\n|>]{1,60})?"),
    ("openssl rand", r"openssl rand [^\n|>]{1,60}"),
    ("makepasswd", r"makepasswd[^\n|>]{0,60}"),
    ("output -raw", r"output -raw \w*(?:pass|secret|token|key)\w*"),
    ("printenv", r"printenv \w*(?i:pass|secret|token|key|pwd)\w*"),
    ("echo", r"\becho \"?\$\{?\w*(?i:passw|pwd|secret|token|api_?key)\w*\}?\"?"),
    ("cat", r"\bcat [^\n|>]{0,100}(?i:passw|secret|token|vault_pass|credential)[^\s|>/]{0,40}"),
    ("gopass", r"gopass (?:show|-o) [^\n|>]{1,100}"),
    ("print-access-token", r"print-access-token"),
    ("auth token", r"gh auth token"),
)
"""Patterns of commands that print a secret on its own line; a space stands for any white space."""

TAKES_INPUT: Final = (
    r"--password-stdin|--stdin\b|--with-token|--pass(?:word|phrase)?-fd|\bpass(?:in)? stdin|-pass stdin"
    r"|\bsudo\b[^|\n]{0,40}\s-\w*S|\bchpasswd\b|\bpasswd\b|\bsmbpasswd\b|\bcryptsetup\b|\bkinit\b"
    r"|\bvncpasswd\b"
    r"|\bcreate secret\b|\bbase64\b(?! -{1,2}[dD])|\bsecret (?:create|set)\b"
    r"|\bsecrets? (?:put|set|versions add)\b|\bhtpasswd\b[^|\n]{0,40}\s-\w*i"
    r"|\bpass insert\b|\bmkpasswd\b|\bopenssl passwd\b|\bvault login\b|\bsu\b (?:-|\w)"
)
"""Commands that read a password from standard input."""
