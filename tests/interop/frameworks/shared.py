"""What the programs of this folder share."""

import argparse
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def options(about, scenarios):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--nuncio", required=True, type=lambda path: pathlib.Path(path).absolute(), help="the binary")
    parser.add_argument("--only", choices=sorted(scenarios), metavar="NAME")
    return parser.parse_args()
