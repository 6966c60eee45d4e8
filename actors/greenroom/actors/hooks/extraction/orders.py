"""Recognise plain rules of the work; whatever else could order the model something waits for a review.

A statement is given at once only if it has one of a few forms, and no mark of an order. A list of forbidden
words alone would let through whatever nobody thought of.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.content.text.private_parts import PRIVATE

_LAST_LATIN: Final = 0x24F
_MAKES: Final = (
    r"use|prefer|write|keep|name|format|put|add|create|import|indent|sort|prefix|declare|define|wrap|quote|escape"
    r"|return|raise|round|include|pin|bump|group|align|spell|cache|mock|squash|rebase"
    r"|(?:go|stick) with|(?:stick|switch|move|migrate) to|standardi[sz]e on|adopt|build|support|store"
)
_VERBS: Final = (
    rf"(?:{_MAKES}|document|validate|update the|regenerate the|log errors|check (?:the )?types"
    r"|show an? (?:\w+ )?(?:dialogs?|errors?|hints?|toasts?)"
    r"|run (?:(?:the|all|our) )?(?:[\w-]+ ){0,3}(?:tests?|suite|linters?|formatters?|checks?|type checker)"
    r"|run `?(?:just|make|tox|nox|ruff|mypy|black|pytest|prettier|eslint|(?:cargo|go|p?npm|yarn)(?: run)?"
    r" (?:test|fmt|vet|check|lint))\b)"
)
"""What a rule of the work does; other verbs wait."""
_AVOIDED: Final = (
    rf"(?:{_MAKES}|commit|edit|touch|change|hard-?code|catch|suppress|throw|mutate|modify|rename|rely on|guess"
    r"|invent|generate|insert|print|log|nest|repeat|shorten|abbreviate|mix)"
)
"""What a rule of the work may forbid. To forbid a question, a check or a report is no such rule."""
_IS: Final = (
    r"(?:is|are|has|have|runs?|uses?|lives?|listens?|needs?|sees?|means?|starts|begins|ends|counts|goes|go|stays?"
    r"|comes?|takes|returns|belongs?|speaks?|supports?|depends?|(?:must|should|can|may)(?: not|not)? (?:be|have|stay|use)"
    r"|ist|sind|hat|haben|l\u00e4uft|laufen|liegt|liegen|nutzt|nutzen|braucht|steht|stehen|geh\u00f6rt)"
)
_LANGUAGE: Final = r"(?:(?:American|British|simple|plain) )?[A-Z][a-z]{3,11}"
_NOW: Final = r"(?:(?:from now on|in (?:the )?future|going forward),? (?:please )?)"
_FORMS: Final = (
    rf"{_NOW}?(?:(?:you (?:should|must) )?always )?{_VERBS}\b.*",
    rf"{_NOW}?(?:you (?:should|must) )?(?:never|don't ever|do not|don't) {_AVOIDED}\b.*",
    rf"{_NOW}?(?:(?:you (?:should|must) )?always )?ask (?:me )?before (?:you )?\w+ [^,;:]*",
    rf"{_NOW}?(?:always )?(?:answer|reply|respond|speak|write) in (?-i:{_LANGUAGE})\.?",
    rf"(?:remember|don't forget|do not forget) to {_VERBS}\b.*",
    r"I(?:'d| would)?(?: strongly| really| much| always)? prefer .*",
    rf"{_NOW}?(?:we|let's|let us|we'll|we will) (?:always |never )?{_VERBS}\b.*",
    r"(?:we're|we are) going to (?:use|keep|go with|stick|switch|move|migrate)\b.*",
    r"(?:we|I)(?:'ve| have)?(?: now| just| finally| already| also)* (?:decided|agreed|settled)"
    rf" (?:to {_VERBS}\b|not to {_AVOIDED}\b|on\b|upon\b|against\b|for\b|that (?:we {_VERBS}|.* {_IS})\b).*",
    r"ich bevorzuge .*",
    r"(?:verwende|benutze|nutze?|schreibe?|nimm|teste) (?:bitte )?(?:immer|nie(?:mals)?) .*",
    r"wir haben (?:uns )?(?:daf\u00fcr )?(?:entschieden|beschlossen|geeinigt),? .*",
    rf"{_NOW}?(?:the|our|an?|all|new|each|every|this (?:project|repo(?:sitory)?)|die|der|das|unsere?|alle"
    rf"|(?!always|does|was|process|access|unless)(?:\w+-)?\w+s(?: (?:in|of|for|from) [\w-]+)?) (?:.* )?{_IS}\b.*",
)
_FORM: Final = re.compile("|".join(f"(?:{each})" for each in _FORMS), re.IGNORECASE | re.DOTALL)
_HARMLESS: Final = re.compile(
    r"\bbefore (?:you |we |each |every |a |the |any )?"
    r"(?:push|commit|merge|deploy|release|delete)(?:e?s|ing|t?ing|s)?(?=\s*(?:$|[.,;!]))"
    r"|\b(?:when you (?:change|add|rename|update|touch)\b|you (?:should|must) (?=always|never))|\b(?:always|on,?) ask (?:me )?before (?:you )?"
    r"|\be-?mail (?:address(?:es)?|fields?|columns?)|\bconfirmation dialogs?|\bpeople (?=as the )"
    r"|(?<!\w)[\u03b1-\u03c9](?!\w)",
    re.IGNORECASE,
)
"""Parts of harmless statements that look like marks."""
_MARKS: Final = (
    # the model, its tools, its permissions, and confirmations
    r"tools?|mcp|greenroom|(?:sub )?agents?|assistants?|models?(?= (?:must|should|may|can))|claude|codex|cursor|gemini",
    r"you|your(?:s|self)?|own|ourselves|itself|auto\w*|automatically|autonomous\w*|me|free to|no matter",
    r"werkzeuge?|du|dir|dich|deine?[mnrs]?|selbst\w*|eigenmachtig|eigenstandig\w*|alone|allein\w*|un(?:restricted|limited|bounded)|nothing|nichts|automatisch\w*|mich|mir",
    r"permi\w+|allow\w*|approv\w+|confirm\w*|consent\w*|grant\w*|authori[sz]\w+|den(?:y|ied)|sandbox\w*|bypass\w*",
    r"privileg\w*|trust\w*|full access|yolo|verify|verification|danger\w*|ask\w*|questions?|prompts?|dialogs?|no limits?",
    r"admin\w*|root|sudo|su|super ?user|owner|rights|any ?thing|every ?thing|what ?ever|wants?|unattended|go ahead",
    r"berechtig\w*|erlaub\w*|genehmig\w*|bestatig\w*|freigabe\w*|\w*frag(?:e|en|t|st|s)?|rechte\w*|darf\w*|durf\w*",
    r"zustimm\w*|einwillig\w*|alles|vertrau\w*|gefahr\w*",
    r"ok|okay|yes|ja|fine|optional|needed|required|necessary|gone|in ordnung|notig|orders?(?= (?:of|from|to the))|lawful",
    r"(?:no|any|nicht|kein\w*) (?:longer|more|mehr)|(?:commands?|actions?|changes|befehle?|aktion\w*) (?:is|are|has|have|can"
    r"|may|must|should|run|runs|ist|sind|hat|haben)",
    # checks that do not count
    r"skip\w*|disabl\w*|deactivat\w*|turn\w*|switch(?:es|ed)? off|off|ignor\w*|disregard\w*|overrid\w*|overrul\w*",
    r"circumvent\w*|reviews?|reviewed|reviewers?|hooks?|security|safe(?:ty|guards?)?|guard\w*|firewall|tls|ssl|fail\w*",
    r"noqa|uncheck\w*|unverified|insecure\w*|false|uberspring\w*|abschalt\w*|ausschalt\w*|deaktivier\w*|umgeh\w*",
    r"sicherheit\w*|pruf\w*|without (?:\w+ )?(?:tests?|testing|checks?|checking|looking|wait\w*)|ohne \w*(?:test|prufung)\w*",
    r"(?:never|nie|niemals|no|not|against|keine?n?) (?:\w+ )?(?:\w+ )?(?:tests?|checks?|backups?|linters?|logs|sicherung\w*)",
    # secrets and accounts
    r"secrets?|pass(?:es|words?|phrases?|wd)?|pwd?|pins?(?= (?:is|are|code|number))|credentials?|cookies?|certificates?",
    r"(?:key ?chain|vault|netrc|npmrc|pgpass|dotenv|env|environments?|aws|ssh|gpg|pgp|id rsa)",
    r"keys?(?! (?:value|words?|names?|bindings?|as|in json))(?<!primary key)(?<!foreign key)|tokens?|log ?ins?",
    r"accounts?|sign ins?|oauth|credit cards?|card numbers?|banks?|money|payments? (?:of|to)|personal data|wallets?",
    r"passw\w*|kennw\w*|geheim\w*|zugang\w*|schlussel\w*|konto|konten|anmeld\w*|umgebungsvariable\w*",
    # other people
    r"colleagues?|co ?workers?|team ?mates?|boss\w*|managers?|maintainers?|(?:other|all) users|behalf|people|persons?",
    r"(?:every|any|some)(?:one|body)|he|she|him|his|her|kolleg\w+|chef\w*|leuten?|personen?",
    r"e ?mails?|mail\w*|slack|discord|telegram|teams|tweet\w*|chat\w*|sms|ping\w*|repl(?:y|ies)|mention\w*|invit\w*",
    r"(?:write|writes|writing|reply|post|talk) (?:it |them |this |that )?(?:to|an|back)|comment on|webhooks?",
    r"notif\w*|inform|contact\w*|tell\w*|obey\w*|report\w*|shar(?:e|es|ed|ing)(?= (?:it|them|this|the|with|to|all))",
    r"post(?:s|ed|ing)? (?:it|them|this|to|on|all)|nachricht\w*|melde\w*|mitteil\w*|antwort\w*|anruf\w*",
    r"(?:schreib\w*) (?:\w+ )?an|messages? to|(?:write|send|schreib\w*) \w+ an? (?:message|note|line)",
    r"when (?:we are |all is )?(?:done|finished|ready)|wenn .*fertig|company|firma|iban|private|privat\w*|public|live",
    r"customers? (?:s )?data|crm|package json|the lines?|data of (?:the |our )?(?:customers?|users?)|pull requests?|mrs?|issues?|tickets?",
    # acts that destroy, or go out
    r"push\w*|merg\w*|deploy\w*|publish\w*|releas\w*|upload\w*|download\w*|sen[dt]s?|sending|forward(?:s|ed|ing)",
    r"transfer\w*|export(?:s|ed|ing)? (?:it|all|the|to)|fetch(?:es|ing)|leak\w*|exfiltrat\w*|pastebin|gists?|buckets?",
    r"delet\w*|remov\w*|drop(?:s|ped|ping)?|wip(?:e|es|ing)|eras\w*|purg\w*|destroy\w*|reset\w*|overwrit\w*|truncat\w*",
    r"kill\w*|rm|uninstall\w*|force\w*|shut ?downs?|revert\w*|clean ?ups?|prune\w*|format (?:the )?(?:disk|drive)\w*",
    r"losch\w*|geloscht\w*|entfern\w*|verwirf|uberschreib\w*|zurucksetz\w*|schick\w*|sende[nt]?|gesendet",
    r"hochlad\w*|herunterlad\w*|veroffentlich\w*|ausliefer\w*|ausroll\w*|\w*pushen|mergen|deployen",
    # other programs, machines and places
    r"curl|wget|net ?cat|nc|scp|sftp|ftp|rsync|telnet|eval|exec|base64|power ?shell|chmod|chown|(?:ba|z|fi)?sh|shell",
    r"production|prod|dns|online|direct (?:commits?|access)|direkt|produktion\w*|remote\w*|hosts?(?: named)?|machines?|clusters?|vms?|laptops?|networks?|internet(?! explorer)|web(?! (?:tokens?|sockets?|components?|workers?))",
    r"prox(?:y|ies)|mirrors?|registry|registries|origin|upstream|open(?:s|ed|ing)?(?! api)|browsers?|urls?|sites?|dot|wiki|pages?",
    r"home (?:folder|directory|dir)|system (?:files?|folders?)|bashrc|zshrc|profile file|cron\w*|heim(?:ordner|verzeichnis)",
    r"rechner\w*|netzwerk\w*|netz|webseiten?|fremde\w*",
    # these rules, and files of rules
    r"instruct\w*|guidelines?|polic(?:y|ies)|memor(?:y|ies)|briefing|rules?|boundar\w+|jail ?break\w*|developer mode",
    r"readme|contributing|agents|settings|cursorrules|copilot|skills?|pretend\w*|act as|secret\w*|silent\w*|quiet\w*",
    r"hid(?:e|es|den|ing)|reveal\w*|disclos\w*|conceal\w*|back ?doors?|lie|lies|lying|claim\w*|anweis\w*|ignorier\w*|regeln?",
    r"erinnerung\w*|verschweig\w*|verberg\w*|heimlich\w*|vorgaben?",
    # the words of others
    r"says?|said|told|wrote|states?(?= (?:that|to))|stated|according|copied|pasted|quoted|laut|sagte?|schreibt",
    # a second clause
    r"then|dann|afterwards|danach|anschliessend",
    r"(?:and|und) (?!not|never|nie|nicht|the|a|an|die|der|das)\w+ (?:the|an?|it|them|all|every\w*|any\w*|each|to|at|with"
    r"|from|into|directly|on|die|den|das|alle|es|sie|nach|mit|von)",
)
_MARK: Final = re.compile(rf"\b(?:{'|'.join(_MARKS)})\b")
_UNSAFE: Final = re.compile(
    r"(?<![\w-])-{1,2}[A-Za-z]|[$;|\\]|&&|(?<!\w)~|\.\.+/|(?<![\w.`])`?/(?!v\d+\b|api\b)"  # a flag, a variable, a path
    r"|(?<!\w)\.(?:env|git|ssh|aws|config|claude|cursor|github|\w*rc)\b|\w@\w|\d+\.\d+\.\d+\.\d+|[A-Za-z]:\d{2,5}\b"
    r"|\b[\w-]+\.(?!(?:[cm]?[jt]sx?|py|pyi|rs|go|md|json|toml|ya?ml|txt|s?css|html?|sql|lua|rb|java|kt|cs?|h|cpp|hpp"
    r"|lock|cfg|ini|csv|svg|png|proto|vue|swift|ex|path)\b)[A-Za-z]{2,}\b",
)
"""A flag, a variable, a path outside, a file of settings, or the name of a host."""
_JOINED: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")


def orders_model(statement: str) -> bool:
    """Return whether a statement may order the model more than a plain rule of the work.

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
