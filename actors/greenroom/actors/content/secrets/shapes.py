"""Shapes of secrets, as their issuers publish them: a table of prefixes and alphabets.

This module has only data; `detect` searches texts for these shapes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_WORD: Final = "A-Za-z0-9"
_HEX: Final = "A-Fa-f0-9"
_URL: Final = r"A-Za-z0-9_\-"
_BASE32: Final = "A-Z2-7"


class Pattern(NamedTuple):
    """Secrets without a common prefix.

    Attributes:
        part: A literal text that each of these secrets contains.
        pattern: A regular expression with bounded repetitions. Its group, if any, is the secret.
        is_spread: Whether the secret spans several runs of letters, digits and marks.
    """

    kind: str
    part: str
    pattern: str
    is_spread: bool = False


class Shape(NamedTuple):
    """Secrets with a common prefix.

    Attributes:
        alphabet: The characters that may follow the prefix, as in a regular expression's brackets.
        least: The least number of characters that follow. All that follow belong to the secret.
        alone: Whether ordinary texts contain the prefix, too. Then no letter may come before it, and no plain
            words after it.
    """

    kind: str
    prefixes: tuple[str, ...]
    alphabet: str
    least: int
    alone: bool = False


SHAPES: Final = (
    Shape("Greenroom API key", ("gr_",), _WORD + "_", 30, alone=True),
    Shape("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), _WORD + "_", 36),
    Shape(
        "GitLab token",
        (
            *("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glft-", "glimt-", "glagent-", "gloas-"),
            *("glsoat-", "glffct-", "GR1348941"),
        ),
        _URL + ".",
        20,
    ),
    Shape("AWS access key id", ("AKIA", "ASIA", "ABIA", "ACCA"), _BASE32, 16),
    Shape("AWS API key", ("ABSK",), _WORD + "+/=", 100, alone=True),
    Shape("Anthropic API key", ("sk-ant-",), _URL, 20),
    Shape("OpenAI API key", ("sk-proj-", "sk-svcacct-", "sk-admin-"), _URL, 20),
    Shape("API key", ("sk-or-v1-", "csk-", "sk-"), _WORD, 32, alone=True),
    Shape("Langfuse key", ("sk-lf-",), _HEX + r"\-", 36, alone=True),
    Shape("Google API key", ("AIza",), _URL, 35),
    Shape("Google OAuth token", ("ya29.", "GOCSPX-"), _URL, 20),
    Shape("Google OAuth token", ("1//0",), _URL, 40, alone=True),
    Shape(
        "Slack token",
        (
            *("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxo-", "xoxc-", "xoxd-"),
            *("xoxe.xox", "xapp-"),
        ),
        _WORD + r"%\-",
        12,
    ),
    Shape(
        "Slack webhook",
        ("hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"),
        _WORD + "/",
        20,
    ),
    Shape("Teams webhook", ("webhook.office.com/webhookb2/",), _URL + "@/", 60),
    Shape("Discord webhook", ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"), _URL + "/", 40),
    Shape("Stripe key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"), _WORD + "+/=", 16),
    Shape("npm token", ("npm_",), _WORD, 36),
    Shape("PyPI token", ("pypi-AgE",), _URL, 50),
    Shape("RubyGems key", ("rubygems_",), _HEX, 48),
    Shape("crates.io token", ("cio",), _WORD, 32, alone=True),
    Shape("Docker token", ("dckr_pat_", "dckr_oat_"), _URL, 20),
    Shape("Hugging Face token", ("hf_", "api_org_"), _WORD, 30, alone=True),
    Shape("API key", ("gsk_", "pplx-", "xai-", "r8_", "pcsk_", "nvapi-"), _URL, 30, alone=True),
    Shape("LangSmith key", ("lsv2_pt_", "lsv2_sk_"), _WORD + "_", 32),
    Shape("Tavily key", ("tvly-",), _URL, 20),
    Shape("DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), _HEX, 40),
    Shape(
        "Doppler token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."), _WORD + "._", 40
    ),
    Shape("Databricks token", ("dapi",), _HEX + r"\-", 32, alone=True),
    Shape("Vault token", ("hvs.", "hvb.", "hvr."), _URL, 24, alone=True),
    Shape("Linear key", ("lin_api_", "lin_oauth_"), _WORD, 32),
    Shape("Notion token", ("ntn_", "secret_"), _WORD, 40, alone=True),
    Shape("Postman key", ("PMAK-",), _HEX + r"\-", 40),
    Shape("Pulumi token", ("pul-",), _HEX, 40, alone=True),
    Shape("PlanetScale token", ("pscale_tkn_", "pscale_pw_", "pscale_oauth_"), _URL + ".=", 30),
    Shape("Shopify token", ("shpat_", "shpca_", "shppa_", "shpss_"), _HEX, 32),
    Shape("Sentry token", ("sntrys_", "sntryu_"), _WORD + "+/=_", 40),
    Shape("SendGrid key", ("SG.",), _URL + ".", 60, alone=True),
    Shape("Brevo key", ("xkeysib-", "xsmtpsib-"), _HEX + _WORD + r"\-", 60),
    Shape("Mailgun key", ("key-",), _HEX, 32, alone=True),
    Shape("Twilio key", ("SK",), _HEX, 32, alone=True),
    Shape("Resend key", ("re_",), _WORD + "_", 30, alone=True),
    Shape("Square token", ("sq0atp-", "sq0csp-"), _URL, 22),
    Shape("Square token", ("EAAA",), _URL, 55, alone=True),
    Shape("Facebook token", ("EAAM", "EAAC"), _WORD, 100, alone=True),
    Shape("New Relic key", ("NRAK-", "NRII-", "NRJS-"), _WORD + r"\-", 19, alone=True),
    Shape("Grafana token", ("glsa_", "glc_"), _WORD + "+/=_", 32, alone=True),
    Shape("Atlassian token", ("ATATT3", "ATCTT3", "ATBB"), _URL + "=", 28, alone=True),
    Shape("Figma token", ("figd_", "figu_"), _URL, 30),
    Shape("Fly.io token", ("fo1_", "fm1a_", "fm1r_", "fm2_"), _URL + "+/=", 40, alone=True),
    Shape("Supabase key", ("sbp_", "sb_secret_"), _URL, 30),
    Shape("age key", ("AGE-SECRET-KEY-1",), "A-Z0-9", 50),
    Shape("Artifactory token", ("AKCp", "cmVmd"), _WORD, 55, alone=True),
    Shape("Adobe secret", ("p8e-",), _WORD, 32, alone=True),
    Shape("Alibaba key id", ("LTAI",), _WORD, 16, alone=True),
    Shape("1Password token", ("ops_eyJ",), _WORD + r"+/=_\-", 100),
    Shape("Dynatrace token", ("dt0c01.",), _WORD + ".", 60),
    Shape("EasyPost key", ("EZAK", "EZTK"), _WORD, 54, alone=True),
    Shape("Shippo token", ("shippo_live_", "shippo_test_"), _HEX, 40),
    Shape("Duffel token", ("duffel_live_", "duffel_test_"), _URL + "=", 40),
    Shape("Contentful token", ("CFPAT-",), _URL, 40),
    Shape("CircleCI token", ("CCIPAT_", "CCIPRJ_"), _WORD + "_", 40),
    Shape("Buildkite token", ("bkua_",), _HEX, 40),
    Shape("Heroku key", ("HRKU-",), _URL, 36),
    Shape("OpenShift token", ("sha256~",), _URL, 43),
    Shape("Netlify token", ("nfp_",), _WORD, 36, alone=True),
    Shape("Tailscale key", ("tskey-",), _WORD + r"\-", 20),
    Shape("Sourcegraph token", ("sgp_",), _HEX + "_local", 40, alone=True),
    Shape("Typeform token", ("tfp_",), _URL + ".=", 40, alone=True),
    Shape("Prefect key", ("pnu_", "pnb_"), _WORD, 36, alone=True),
    Shape("ReadMe key", ("rdme_",), _WORD, 60, alone=True),
    Shape("Clojars token", ("CLOJARS_",), _HEX, 60),
    Shape("NuGet key", ("oy2",), "a-z0-9", 43, alone=True),
)
"""From the issuers' documentation. Public identifiers such as Stripe's ``pk_live_`` are not secrets."""

PATTERNS: Final = (
    Pattern(
        "AWS secret key",
        "AKIA",
        r"(?<=[A-Z2-7]{20})[^A-Za-z0-9+/]{1,8}([A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])",
        is_spread=True,
    ),
    Pattern("Telegram token", ":AA", r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])"),
    Pattern("Discord token", ".", r"(?<![\w.-])[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w.-])"),
    Pattern("Airtable token", "pat", r"(?<![A-Za-z0-9])pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    Pattern("Terraform token", ".atlasv1.", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,80}"),
    Pattern("Azure secret", "Q~", r"(?<![\w.~-])[\w.~]{3}[0-9]Q~[\w.~-]{31,34}(?![\w~-])"),
    Pattern("Mailchimp key", "-us", r"(?<![0-9a-f])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9])"),
    Pattern("recovery key", "-", r"(?<![\w-])[0-9]{6}(?:-[0-9]{6}){7}(?![\w-])"),
    Pattern(
        "product key",
        "-",
        r"(?<![\w-])(?=[A-Z-]{0,28}[0-9])(?=[0-9-]{0,28}[A-Z])[A-Z0-9]{5}(?:-[A-Z0-9]{5}){4}(?![\w-])",
    ),
    Pattern(
        "recovery key",
        "-",
        r"(?<![\w-])(?=[A-Z-]{0,28}[0-9])(?=[0-9-]{0,28}[A-Z])[A-Z0-9]{4}(?:-[A-Z0-9]{4}){5}(?![\w-])",
    ),
    Pattern(
        "wallet key",
        "",
        r"(?<!\w)[5KL](?=\w{0,50}[1-9])(?=\w{0,50}[a-z])(?=\w{0,50}[A-Z])[1-9A-HJ-NP-Za-km-z]{50,51}(?!\w)",
    ),
    Pattern("1Password key", "A3-", r"(?<![A-Z0-9-])A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-){2,5}[A-Z0-9]{5,11}"),
)
