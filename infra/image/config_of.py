"""Prints the configuration that a YAML file carries: the text block below `HOOKGATE_CONFIG` or `hookgate.toml`."""

import re
import sys
import textwrap

text = open(sys.argv[1]).read()
found = re.search(r"^( *)(?:HOOKGATE_CONFIG|hookgate\.toml): \|\n((?:\1  .*\n|\n)+)", text, re.M)
if not found:
    sys.exit(f"{sys.argv[1]} carries no configuration")
print(textwrap.dedent(found.group(2)))
