"""Annotated unordered trees, queries of them, and their answers by recursion, by rules, and kept current."""

from whence.trees.check import load_query, load_query_file
from whence.trees.core import Query
from whence.trees.documents import Document, annotate, parse_document, read_document, read_policy
from whence.trees.evaluate import evaluate_query
from whence.trees.maintain import Change, Maintained
from whence.trees.nodes import Delete, Insert, Reannotate
from whence.trees.shred import evaluate_shredded
from whence.trees.values import Forest, KSet, KSets, Tree, convert

__all__ = [
    "Change",
    "Delete",
    "Document",
    "Forest",
    "Insert",
    "KSet",
    "KSets",
    "Maintained",
    "Query",
    "Reannotate",
    "Tree",
    "annotate",
    "convert",
    "evaluate_query",
    "evaluate_shredded",
    "load_query",
    "load_query_file",
    "parse_document",
    "read_document",
    "read_policy",
]
