# Reads a vCard with vobject, which knows nothing of us, and writes its
# properties as JSON. Line ends within a text are \n, as 2.1 has them as CR LF.
import io
import json
import sys

import vobject

text = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", newline="").read()
card = vobject.readOne(text, allowQP=True)
properties = []
for line in card.lines():
    value = line.value
    if line.name == "N":
        value = {"family": value.family, "given": value.given}
    else:
        value = value.replace("\r\n", "\n")
    # 2.1 has types without a name.
    types = [t.upper() for t in line.params.get("TYPE", []) + line.singletonparams]
    properties.append({"name": line.name, "types": types or None, "value": value})
json.dump(properties, sys.stdout)
