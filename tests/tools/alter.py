"""alter.py FILE FIELD EXPRESSION: in a file of JSON objects, one a line, gives the middle one of the
lines that have the field another value, an expression of the present one, v. Prints its line."""
import json
import sys

path, field, expression = sys.argv[1:]
lines = open(path).read().splitlines()
having = [i for i, text in enumerate(lines) if field in json.loads(text)]
at = having[len(having) // 2]
entry = json.loads(lines[at])
entry[field] = eval(expression, {"v": entry[field]})
lines[at] = json.dumps(entry)
open(path, "w").write("\n".join(lines) + "\n")
print(at + 1)
