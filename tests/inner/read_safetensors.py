"""Reads a safetensors file by the format's public rules, with nothing of bpt's, and prints it:
"start BYTES", metadata as "meta KEY VALUE", tensors as "NAME DTYPE SHAPE VALUES...", in the order
of their data."""
import json
import struct
import sys

content = open(sys.argv[1], "rb").read()
(length,) = struct.unpack("<Q", content[:8])
header_bytes = content[8:8 + length]
assert len(header_bytes) == length and header_bytes[:1] == b"{"
header = json.loads(header_bytes.decode("utf-8"))
data = content[8 + length:]
print("start", 8 + length)
for key, value in header.pop("__metadata__", {}).items():
    assert isinstance(value, str)
    print("meta", key, value)
end = 0
for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    first, last = tensor["data_offsets"]
    count = 1
    for n in tensor["shape"]:
        count *= n
    assert first == end and last - first == 4 * count and tensor["dtype"] == "F32"
    values = struct.unpack("<%df" % count, data[first:last])
    print(name, tensor["dtype"], "x".join(map(str, tensor["shape"])), *("%g" % v for v in values))
    end = last
assert end == len(data)
