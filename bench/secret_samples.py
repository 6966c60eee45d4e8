"""Secrets that were never anybody's, drawn by the shapes that issuers publish, and texts that they stand in.

Drawn anew in each run, so that no file of ours holds what a scanner of repositories would stop at. Written
from the issuers' documentation, without a look at `greenroom.actors.content.secrets.shapes`.
"""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from greenroom.actors.core.auth.key_format import new_key

LETTERS = string.ascii_letters
WORD = LETTERS + string.digits
LOWER = string.ascii_lowercase + string.digits
URL = WORD + "_-"
BASE64 = WORD + "+/"
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits


class Sample(NamedTuple):
    """A text with a secret in it: what kind it is, and the part that may not be left in it."""

    kind: str
    text: str
    secret: str


class _Draw:
    """Draws strings."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance

    def __call__(self, length: int, alphabet: str = WORD) -> str:
        return "".join(self.chance.choices(alphabet, k=length))

    def fill(self, pattern: str) -> str:
        """Replace each ``{alphabet:length}`` of a pattern by as many characters of it."""
        names = {
            "w": WORD,
            "l": LOWER,
            "u": URL,
            "b": BASE64,
            "x": HEX,
            "d": string.digits,
            "U": UPPER,
            "a": LETTERS,
        }
        parts = pattern.replace("{", "\0{").replace("}", "}\0").split("\0")
        return "".join(self(int(p[3:-1]), names[p[1]]) if p.startswith("{") else p for p in parts)


PATTERNS = {
    "AWS access key id": "AKIA{U:0}",
    "GitHub personal token": "ghp_{w:36}",
    "GitHub OAuth token": "gho_{w:36}",
    "GitHub app token": "ghs_{w:36}",
    "GitHub fine-grained token": "github_pat_{w:22}_{w:59}",
    "GitLab personal token": "glpat-{u:20}",
    "GitLab runner token": "glrt-{u:20}",
    "GitLab deploy token": "gldt-{u:20}",
    "Slack bot token": "xoxb-{d:12}-{d:13}-{w:24}",
    "Slack user token": "xoxp-{d:12}-{d:12}-{d:13}-{x:32}",
    "Slack app token": "xapp-1-A{U:10}-{d:13}-{x:64}",
    "Slack webhook": "https://hooks.slack.com/services/T{U:8}/B{U:10}/{w:24}",
    "Stripe secret key": "sk_live_{w:24}",
    "Stripe test key": "sk_test_{w:99}",
    "Stripe restricted key": "rk_live_{w:24}",
    "Stripe webhook secret": "whsec_{w:32}",
    "Google API key": "AIza{u:35}",
    "Google OAuth secret": "GOCSPX-{u:28}",
    "Google access token": "ya29.a0{u:120}",
    "OpenAI key": "sk-{w:20}T3BlbkFJ{w:20}",
    "OpenAI project key": "sk-proj-{u:74}T3BlbkFJ{u:74}",
    "OpenAI service key": "sk-svcacct-{u:58}T3BlbkFJ{u:58}",
    "Anthropic key": "sk-ant-api03-{u:93}AA",
    "Anthropic admin key": "sk-ant-admin01-{u:93}AA",
    "OpenRouter key": "sk-or-v1-{x:64}",
    "Groq key": "gsk_{w:52}",
    "xAI key": "xai-{w:80}",
    "Perplexity key": "pplx-{w:48}",
    "Hugging Face token": "hf_{a:34}",
    "Replicate token": "r8_{w:37}",
    "npm token": "npm_{w:36}",
    "PyPI token": "pypi-AgEIcHlwaS5vcmc{u:150}",
    "RubyGems key": "rubygems_{x:48}",
    "Docker token": "dckr_pat_{u:27}",
    "DigitalOcean token": "dop_v1_{x:64}",
    "Databricks token": "dapi{x:32}",
    "Vault token": "hvs.{u:95}",
    "Terraform token": "{w:14}.atlasv1.{u:67}",
    "Linear key": "lin_api_{w:40}",
    "Notion token": "ntn_{d:11}{w:35}",
    "Postman key": "PMAK-{x:24}-{x:34}",
    "Pulumi token": "pul-{x:40}",
    "Shopify token": "shpat_{x:32}",
    "Sentry token": "sntryu_{x:64}",
    "SendGrid key": "SG.{u:22}.{u:43}",
    "Brevo key": "xkeysib-{x:64}-{l:16}",
    "Mailchimp key": "{x:32}-us12",
    "Twilio key": "SK{x:32}",
    "Telegram token": "{d:10}:AA{u:33}",
    "Discord token": "MT{w:24}.{u:6}.{u:38}",
    "Square token": "sq0atp-{u:22}",
    "New Relic key": "NRAK-{U:27}",
    "Grafana token": "glsa_{w:32}_{x:8}",
    "Atlassian token": "ATATT3xFfGF0{u:180}={x:8}",
    "Figma token": "figd_{u:40}",
    "Airtable token": "pat{w:14}.{x:64}",
    "Azure client secret": "{w:3}8Q~{u:34}",
    "Supabase token": "sbp_{x:40}",
    "age key": "AGE-SECRET-KEY-1{U:58}",
    "Fly.io token": "fo1_{u:43}",
    "Tailscale key": "tskey-auth-{w:17}-{w:32}",
}
"""By kind: the fixed parts, and how many characters of which alphabet stand between them."""

_NAMED = {
    "AWS secret key": ("AWS_SECRET_ACCESS_KEY", "{b:40}"),
    "Azure storage key": ("AccountKey", "{b:86}=="),
    "Datadog key": ("DATADOG_API_KEY", "{x:32}"),
    "Heroku key": ("HEROKU_API_KEY", "{x:8}-{x:4}-{x:4}-{x:4}-{x:12}"),
    "Cloudflare token": ("CLOUDFLARE_API_TOKEN", "{u:40}"),
    "Django secret": ("SECRET_KEY", "{u:50}"),
    "Mistral key": ("MISTRAL_API_KEY", "{w:32}"),
    "Cohere key": ("CO_API_KEY", "{w:40}"),
    "client secret": ("client_secret", "{u:40}"),
    "short token": ("api_token", "{l:16}"),
}
"""What only its name tells, and how it may be named."""
_PASSWORD_WORDS = ("summer", "winter", "dragon", "falcon", "monkey", "orange", "silver", "tiger", "hunter")


def tokens(chance: Random) -> Iterator[tuple[str, str, str]]:
    """Yield one of each kind of token: the kind, a usual name of a setting that has it, and the token."""
    draw = _Draw(chance)
    for kind, pattern in PATTERNS.items():
        token = (
            "AKIA" + draw(16, string.ascii_uppercase + "234567") if "{U:0}" in pattern else draw.fill(pattern)
        )
        yield kind, kind.upper().replace(" ", "_").replace(".", "_"), token
    yield "Greenroom key", "GREENROOM_KEY", new_key(chance.choice).whole
    parts = (
        {"alg": "HS256", "typ": "JWT"},
        {"sub": draw(10, string.digits), "name": "Ann", "iat": 1516239022},
    )
    encoded = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts]
    yield "JSON web token", "SESSION_JWT", ".".join((*encoded, draw(43, URL)))


_BY_SHAPE: tuple[tuple[str, Callable[[str, str], str]], ...] = (
    ("prose", lambda _, token: f"Use {token} for the next call, please."),
    ("variable", lambda name, token: f"$ export {name}={token}\n$ make deploy"),
    ("JSON", lambda name, token: json.dumps({"id": 7, name.lower(): token, "ok": True})),
    ("JSON in JSON", lambda name, token: json.dumps({"output": json.dumps({name.lower(): token}) + "\n"})),
    ("YAML", lambda name, token: f"env:\n  {name}: {token}\n  DEBUG: 1"),
    ("call", lambda name, token: f'client = Client({name.lower()}="{token}", retries=3)'),
    ("header", lambda _, token: f'curl -H "Authorization: Bearer {token}" https://api.example.org/v1'),
    ("address", lambda _, token: f"GET /v1/items?page=2&access_token={token} HTTP/1.1"),
    ("log", lambda _, token: f"2026-11-02 10:11:12 DEBUG auth: using {token}"),
    ("Markdown", lambda _, token: f"Put `{token}` into the file."),
)
_BY_NAME: tuple[tuple[str, Callable[[str, str], str]], ...] = (
    *(each for each in _BY_SHAPE if each[0] in {"variable", "JSON", "JSON in JSON", "YAML", "call"}),
    ("connection", lambda name, token: f"Endpoint=https://x.example.org;{name}={token};Timeout=3"),
)
_PASSWORD_PLACES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("variable", lambda value: f"DB_PASSWORD={value}"),
    ("quoted", lambda value: f'password = "{value}"'),
    ("JSON", lambda value: json.dumps({"user": "ann", "password": value})),
    ("YAML", lambda value: f"db:\n  user: ann\n  password: {value}\n"),
    ("call", lambda value: f"connect(host='db', passwd='{value}')"),
    ("option", lambda value: f"mysqldump --user ann --password={value} shop > shop.sql"),
    ("address", lambda value: f"DATABASE_URL=postgres://ann:{value}@db.example.org:5432/shop"),
    ("properties", lambda value: f"spring.datasource.password={value}\nspring.datasource.username=ann"),
    ("curl", lambda value: f"curl -u ann:{value} https://example.org/x"),
    ("prose", lambda value: f"The password is {value}, but tell nobody."),
    ("XML", lambda value: f"<user>ann</user><password>{value}</password>"),
)


def token_samples(chance: Random) -> Iterator[Sample]:
    """Yield tokens with a shape of their own in each kind of text, and others where their names stand."""
    for kind, name, token in tokens(chance):
        for where, put in _BY_SHAPE:
            yield Sample(f"{kind}/{where}", put(name, token), token)
    draw = _Draw(chance)
    for kind, (name, pattern) in _NAMED.items():
        for where, put in _BY_NAME:
            token = draw.fill(pattern)
            yield Sample(f"{kind}/{where}", put(name, token), token)


def password_samples(chance: Random, count: int) -> Iterator[Sample]:
    """Yield passwords as people choose them and as programs draw them, in each kind of text."""
    draw = _Draw(chance)
    for _ in range(count):
        words = chance.sample(_PASSWORD_WORDS, 2)
        for style, value in (
            ("word and number", f"{words[0]}{chance.randrange(10, 9_999)}"),
            (
                "symbols",
                f"{words[0].capitalize()}{chance.choice('!$%&*?#+')}{chance.randrange(1, 99)}{draw(2)}",
            ),
            ("drawn", draw(16, WORD + "!#%*+-_.")),
        ):
            for where, put in _PASSWORD_PLACES:
                secret = value.replace("#", "%23").replace("%2", "%252") if where == "address" else value
                yield Sample(f"password, {style}/{where}", put(secret), secret)


def key_samples(chance: Random, count: int) -> Iterator[Sample]:
    """Yield private keys as files have them, as JSON has them, as tools print them, and cut at either end."""
    draw = _Draw(chance)
    for number in range(count):
        name = ("RSA ", "EC ", "", "OPENSSH ", "ENCRYPTED ")[number % 5]
        lines = [draw(64, BASE64) for _ in range(chance.randrange(2, 20))] + [draw(38, BASE64) + "=="]
        begin, end = f"-----BEGIN {name}PRIVATE KEY-----", f"-----END {name}PRIVATE KEY-----"
        whole = "\n".join((begin, *lines, end))
        numbered = "\n".join(f"{n:6}\u2192{line}" for n, line in enumerate(whole.splitlines(), 1))
        for where, text in (
            ("file", f"cat key.pem\n{whole}\n$ ls"),
            ("JSON", json.dumps({"private": whole + "\n", "id": 3})),
            ("numbered", numbered),
            ("diff", "\n".join(f"+{line}" for line in whole.splitlines())),
            ("indented", "\n".join(f"    {line}" for line in whole.splitlines())),
            ("without its end", "\n".join((begin, *lines))),
            ("without its beginning", "\n".join((*lines, end, "done"))),
        ):
            yield Sample(f"private key/{where}", text, lines[-1])
            yield Sample(f"private key/{where}", text, lines[0])
