"""Texts: tokens and terms, sentences, short forms, escaping."""
