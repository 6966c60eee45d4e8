"""Recognise plain rules of the work; all else may be an order.

A statement is given at once only if it has one of a few forms, and no mark of an order. A list of forbidden
words alone lets through whatever is not on it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.content.text.private_parts import PRIVATE

_LAST_LATIN: Final = 0x24F
_MAKES: Final = (
    r"use|prefer|write|keep|name|format|put|add|import|indent|sort|prefix|declare|define|wrap|quote|escape"
    r"|return|raise|round|include|pin|bump|group|align|spell|cache|mock|squash|rebase"
    r"|(?:go|stick) with|(?:stick|switch|move|migrate) to|standardi[sz]e on|adopt|build|support|store"
)
_VERBS: Final = (
    rf"(?:{_MAKES}|document|validate|update the|regenerate the|log errors|check (?:the )?types"
    r"|create (?:a|an|the|new) (?:\w+ )?(?:files?|tests?|modules?|class(?:es)?|migrations?|branch(?:es)?)"
    r"|show an? (?:\w+ )?(?:dialogs?|errors?|hints?|toasts?)"
    r"|run (?:(?:the|all|our) )?(?:[\w-]+ ){0,3}(?:tests?|suite|linters?|formatters?|checks?|type checker)"
    r"|run `?(?:just|make|tox|nox|ruff|mypy|black|pytest|prettier|eslint|(?:cargo|go|p?npm|yarn)(?: run)?"
    r" (?:test|fmt|vet|check|lint))\b)"
)
"""What a rule of the work does; other verbs wait."""
_AVOIDED: Final = (
    rf"(?:{_MAKES}|commit|edit|touch|change|hard-?code|catch|suppress|throw|mutate|modify|rename|rely on"
    r"|guess|invent|generate|insert|print|log|nest|repeat|shorten|abbreviate|mix)"
)
"""What a rule of the work may forbid. To forbid a question, a check or a report is no such rule."""
_IS: Final = (
    r"(?:is|are|has|have|runs?|uses?|lives?|listens?|needs?|sees?|means?|starts|begins|ends|counts|goes|go|stays?"
    r"|comes?|takes|returns|belongs?|speaks?|supports?|depends?"
    r"|(?:must|should|can|may)(?: not|not)? (?:be|have|stay|use)"
    r"|ist|sind|hat|haben|l\u00e4uft|laufen|liegt|liegen|nutzt|nutzen|braucht|steht|stehen|geh\u00f6rt)"
)
_LANGUAGE: Final = r"(?:(?:American|British|simple|plain) )?[A-Z][a-z]{3,11}"
_NOW: Final = r"(?:(?:from now on|in (?:the )?future|going forward),? (?:please )?)"
_DECIDED: Final = r"(?:we|I)(?:'ve| have)?(?: now| just| finally| already| also)* (?:decided|agreed|settled)"
_NOUN: Final = (
    r"(?:apis?|apps?|back ?ends?|front ?ends?|databases?|servers?|services?|endpoints?|ports?|prices?"
    r"|amounts?|dates?|times?|tests?|jobs?|files?|folders?|branch(?:es)?|builds?|versions?|schemas?|migrations?|ids?|tables?"
    r"|columns?|fields?|customers|modules?|class(?:es)?|functions?|names?|queues?|caches?|sessions?|repo(?:sitory)?|project"
    r"|code(?: ?base)?|docs?|components?|types?|units?|datenbank(?:en)?|dienste?|preise?"
    r"|dateien|ordner|tabellen?)"
)
"""What a fact of the work is about; other facts wait."""
_SUBJECT: Final = (
    r"(?:(?:the|our|an?|all|new|each|every|this|die|der|das|unsere?|alle) )?(?:[\w-]+ ){0,2}"
    rf"{_NOUN}(?: (?:in|of|for|from) (?:the )?[\w-]+)?"
)
_FORMS: Final = (
    rf"{_NOW}?(?:(?:you (?:should|must) )?always )?{_VERBS}\b.*",
    rf"{_NOW}?(?:you (?:should|must) )?(?:never|don't ever|do not|don't) {_AVOIDED}\b.*",
    rf"{_NOW}?(?:(?:you (?:should|must) )?always )?ask (?:me )?before (?:you )?\w+ [^,;:]*",
    rf"{_NOW}?(?:always )?(?:answer|reply|respond|speak|write) in (?-i:{_LANGUAGE})\.?",
    rf"(?:remember|don't forget|do not forget) to {_VERBS}\b.*",
    r"I(?:'d| would)?(?: strongly| really| much| always)? prefer .*",
    rf"{_NOW}?(?:we|let's|let us|we'll|we will) (?:always |never )?{_VERBS}\b.*",
    r"(?:we're|we are) going to (?:use|keep|go with|stick|switch|move|migrate)\b.*",
    rf"{_DECIDED} (?:to {_VERBS}|not to {_AVOIDED}|on|upon|against|for|that we {_VERBS})\b.*",
    rf"{_DECIDED} that {_SUBJECT} {_IS}\b.*",
    r"ich bevorzuge .*",
    r"(?:verwende|benutze|nutze?|schreibe?|nimm|teste) (?:bitte )?(?:immer|nie(?:mals)?) .*",
    r"wir haben (?:uns )?(?:daf\u00fcr )?(?:entschieden|beschlossen|geeinigt),? .*",
    rf"{_NOW}?{_SUBJECT} (?:(?:only|always|never|nur|immer) )?{_IS}\b.*",
)
_FORM: Final = re.compile("|".join(f"(?:{each})" for each in _FORMS), re.IGNORECASE | re.DOTALL)
_HARMLESS: Final = re.compile(
    r"\bbefore (?:you |we |each |every |a |the |any )?"
    r"(?:push|commit|merge|deploy|release|delete)(?:e?s|ing|t?ing|s)?(?=\s*(?:$|[.,;!]))"
    r"|\b(?:when you (?:change|add|rename|update|touch)\b|you (?:should|must) (?=always|never))"
    r"|\b(?:always|on,?) ask (?:me )?before (?:you )?"
    r"|\bgit (?=mv|blame)|\be-?mail (?:address(?:es)?|fields?|columns?)"
    r"|\bconfirmation dialogs?|\bpeople (?=as the )"
    r"|(?<!\w)[\u03b1-\u03c9](?!\w)",
    re.IGNORECASE,
)
"""Parts of harmless statements that look like marks."""
_MARKS: Final = (
    # the model, its tools, its permissions, and confirmations
    r"tools?|mcp|greenroom|(?:sub )?agents?|assistants?|models?(?= (?:must|should|may|can))|claude|codex",
    r"cursor|gemini|you|your(?:s|self)?|own|ourselves|itself|auto\w*|automatically|autonomous\w*|me",
    r"free to|no matter|werkzeuge?|du|dir|dich|deine?[mnrs]?|selbst\w*|eigenmachtig|eigenstandig\w*",
    r"alone|allein\w*|un(?:restricted|limited|bounded)|nothing|nichts|automatisch\w*|mich|mir|permi\w+",
    r"allow\w*|approv\w+|confirm\w*|consent\w*|grant\w*|authori[sz]\w+|den(?:y|ied)|sandbox\w*|bypass\w*",
    r"privileg\w*|trust\w*|full access|yolo|verify|verification|danger\w*|ask\w*|questions?|prompts?",
    r"dialogs?|no limits?|admin\w*|root|sudo|su|super ?user|owner|rights|any ?thing|every ?thing",
    r"what ?ever|wants?|unattended|go ahead|berechtig\w*|erlaub\w*|genehmig\w*|bestatig\w*|freigabe\w*",
    r"\w*frag(?:e|en|t|st|s)?|rechte\w*|darf\w*|durf\w*|zustimm\w*|einwillig\w*|alles|vertrau\w*",
    r"gefahr\w*|ok|okay|yes|ja|fine|optional|needed|required|necessary|gone|in ordnung|notig",
    r"orders?(?= (?:of|from|to the))|lawful|(?:no|any|nicht|kein\w*) (?:longer|more|mehr)",
    r"(?:commands?|actions?|changes) (?:is|are|has|have|can|may|must|should|runs?)",
    r"(?:befehle?|aktion\w*) (?:ist|sind|hat|haben)|the users?|der benutzer|benutzer|important|priority",
    r"has agreed|agrees|objections?|einverstanden|abgesegnet|vorgange",
    r"(?:full|all|elevated|expert|wild|\w+) mode|caution|careful\w*|vorsicht\w*|interrupt\w*",
    r"unterbrech\w*|oversight|supervis\w*|first(?= *$)|until done|keep (?:going|working)|bis .*fertig",
    r"brakes?|unsafe\w*|unknown|weg",
    # checks that do not count
    r"skip\w*|disabl\w*|deactivat\w*|turn\w*|switch(?:es|ed)? off|off|ignor\w*|disregard\w*|overrid\w*",
    r"overrul\w*|circumvent\w*|reviews?|reviewed|reviewers?|hooks?|security|safe(?:ty|guards?)?|guard\w*",
    r"firewall|tls|ssl|fail\w*|noqa|uncheck\w*|unverified|insecure\w*|false|uberspring\w*|abschalt\w*",
    r"ausschalt\w*|deaktivier\w*|umgeh\w*|sicherheit\w*|pruf\w*",
    r"without (?:\w+ )?(?:tests?|testing|checks?|checking|looking|wait\w*)|ohne \w*(?:test|prufung)\w*",
    r"(?:never|no|not|against) (?:\w+ )?(?:\w+ )?(?:tests?|checks?|backups?|linters?|logs)",
    r"(?:nie|niemals|keine?n?) (?:\w+ )?(?:\w+ )?(?:tests?|backups?|sicherung\w*)|pip|npx|gh|git",
    r"npm (?:i|install|publish)|https?|plain ?text|keylog\w*|telemetry|phones?|wire|followed|executed",
    r"malware|payload|wi ?fi|wlan|doors?|tur",
    # secrets and accounts
    r"secrets?|pass(?:es|words?|phrases?|wd)?|pwd?|pins?(?= (?:is|are|code|number))|credentials?",
    r"cookies?|certificates?",
    r"(?:key ?chain|vault|netrc|npmrc|pgpass|dotenv|env|environments?|aws|ssh|gpg|pgp|id rsa)",
    r"keys?(?! (?:value|words?|names?|bindings?|as|in json))(?<!primary key)(?<!foreign key)|tokens?",
    r"log ?ins?|accounts?|sign ins?|oauth|credit cards?|card numbers?|banks?|money|payments? (?:of|to)",
    r"personal data|wallets?|passw\w*|kennw\w*|geheim\w*|zugang\w*|schlussel\w*|konto|konten|anmeld\w*",
    r"umgebung\w*|protokoll\w*|address",
    # other people
    r"colleagues?|co ?workers?|team ?mates?|boss\w*|managers?|maintainers?|(?:other|all) users|behalf",
    r"people|persons?|(?:every|any|some)(?:one|body)|he|she|him|his|her|kolleg\w+|chef\w*|leuten?",
    r"personen?|e ?mails?|mail\w*|slack|discord|telegram|teams|tweet\w*|chat\w*|sms|ping\w*",
    r"repl(?:y|ies)|mention\w*|invit\w*",
    r"(?:write|writes|writing|reply|post|talk) (?:it |them |this |that )?(?:to|an|back)|comment on",
    r"webhooks?|notif\w*|inform|contact\w*|tell\w*|obey\w*|report\w*",
    r"shar(?:e|es|ed|ing)(?= (?:it|them|this|the|with|to|all))",
    r"post(?:s|ed|ing)? (?:it|them|this|to|on|all)|nachricht\w*|melde\w*|mitteil\w*|antwort\w*|anruf\w*",
    r"(?:schreib\w*) (?:\w+ )?an|messages? to|(?:write|send|schreib\w*) \w+ an? (?:message|note|line)",
    r"when (?:we are |all is )?(?:done|finished|ready)|wenn .*fertig|company|firma|iban|private",
    r"privat\w*|public|live|customers? (?:s )?data|crm|package json|the lines?",
    r"data of (?:the |our )?(?:customers?|users?)|pull requests?|mrs?|issues?|tickets?",
    # acts that destroy, or go out
    r"push\w*|merg\w*|deploy\w*|publish\w*|releas\w*|upload\w*|download\w*|sen[dt]s?|sending",
    r"forward(?:s|ed|ing)|transfer\w*|export(?:s|ed|ing)? (?:it|all|the|to)|fetch(?:es|ing)|leak\w*",
    r"exfiltrat\w*|pastebin|gists?|buckets?|delet\w*|remov\w*|drop(?:s|ped|ping)?|wip(?:e|es|ing)",
    r"eras\w*|purg\w*|destroy\w*|reset\w*|overwrit\w*|truncat\w*|kill\w*|rm|uninstall\w*|force\w*",
    r"shut ?downs?|revert\w*|clean ?ups?|prune\w*|format (?:the )?(?:disk|drive)\w*|losch\w*|geloscht\w*",
    r"entfern\w*|verwirf|uberschreib\w*|zurucksetz\w*|schick\w*|sende[nt]?|gesendet|hochlad\w*",
    r"herunterlad\w*|veroffentlich\w*|ausliefer\w*|ausroll\w*|\w*pushen|mergen|deployen",
    # other programs, machines and places
    r"curl|wget|net ?cat|nc|scp|sftp|ftp|rsync|telnet|eval|exec|base64|power ?shell|chmod|chown",
    r"(?:ba|z|fi)?sh|shell|production|prod|dns|online|direct (?:commits?|access|work)|direkt",
    r"produktion\w*|remote\w*|hosts?(?: named)?|machines?|clusters?|vms?|laptops?|networks?",
    r"internet(?! explorer)|web(?! (?:tokens?|sockets?|components?|workers?))|prox(?:y|ies)|mirrors?",
    r"registry|registries|origin|upstream|open(?:s|ed|ing)?(?! api)|browsers?|urls?|sites?|dot|wiki",
    r"pages?|home (?:folder|directory|dir)|system (?:files?|folders?)|bashrc|zshrc|profile file|cron\w*",
    r"heim(?:ordner|verzeichnis)|rechner\w*|netzwerk\w*|netz|webseiten?|fremde\w*",
    # these rules, and files of rules
    r"instruct\w*|guidelines?|polic(?:y|ies)|memor(?:y|ies)|briefing|rules?|boundar\w+|jail ?break\w*",
    r"developer mode|readme|contributing|agents|settings|cursorrules|copilot|skills?|pretend\w*|act as",
    r"secret\w*|silent\w*|quiet\w*|hid(?:e|es|den|ing)|reveal\w*|disclos\w*|conceal\w*|back ?doors?|lie",
    r"lies|lying|claim\w*|anweis\w*|ignorier\w*|regeln?|erinnerung\w*|verschweig\w*|verberg\w*",
    r"heimlich\w*|vorgaben?",
    # the words of others
    r"says?|said|told|wrote|states?(?= (?:that|to))|stated|according|copied|pasted|quoted|laut|sagte?",
    r"schreibt",
    # a second clause
    r"then|dann|afterwards|danach|anschliessend",
    r"and (?!not|never|the|an?\b)\w+ (?:the|an?|it|them|all|every|any|each|to|at|with|from|into|on|directly)",
    r"und (?!nicht|nie|die|der|das)\w+ (?:die|den|das|alle|es|sie|nach|mit|von)",
)
_MARK: Final = re.compile(rf"\b(?:{'|'.join(_MARKS)})\b")
_UNSAFE: Final = re.compile(
    r"(?<![\w-])-{1,2}[A-Za-z]|[$;|\\]|&&|(?<!\w)~|\.\.+/|(?<![\w.`])`?/(?!v\d+\b|api\b)"
    r"|(?<!\w)\.(?:env|git|ssh|aws|config|claude|cursor|github|\w*rc)\b|\w@\w|\d+\.\d+\.\d+\.\d+|[A-Za-z]:\d{2,5}\b"
    r"|\b[\w-]+\.(?!(?:[cm]?[jt]sx?|py|pyi|rs|go|md|json|toml|ya?ml|txt|s?css|html?|sql|lua|rb|java|kt|cs?|h|cpp|hpp"
    r"|lock|cfg|ini|csv|svg|png|proto|vue|swift|ex|path)\b)[A-Za-z]{2,}\b",
)
"""A flag, a variable, a path outside, a file of settings, or the name of a host."""
_JOINED: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")


def orders_model(statement: str) -> bool:
    """Return whether a statement may order more than a rule of the work.

    Its tools, permissions, secrets, other people and machines, these rules, and acts that destroy or go out
    are meant. The words of others that a person reports count, too, and letters that could disguise a word.
    """
    form = statement.strip().replace("\u2019", "'")
    bare = _HARMLESS.sub(" ", form)
    return (
        _FORM.fullmatch(form) is None
        or _UNSAFE.search(bare) is not None
        or _MARK.search(_words(bare)) is not None
        or LEFT_OUT_BEGINS in statement
        or PRIVATE in statement
        or any(ord(each) > _LAST_LATIN and each.isalpha() for each in bare)
    )


def _words(text: str) -> str:
    """Return the words of a text in small letters without accents; compounds come apart."""
    parts = unicodedata.normalize("NFKD", _JOINED.sub(" ", text))
    return "".join(each for each in parts.casefold() if not unicodedata.combining(each))
