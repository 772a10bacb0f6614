#!/usr/bin/env python3
"""The hook of the CatSet example, without dependencies: it answers what pods a CatSet wants.

It gives the same answers as examples/catset/hook.go; a test compares them.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def sync(parent, pods):
    """What a CatSet wants: pods 0 to replicas-1, the last one first.

    While it grows, a new pod is wanted once all before it are ready. One that was wanted before stays wanted, whatever the
    others do: status.replicas remembers how many. So one that is lost comes back at once, and at the revision that it had.
    """
    name, spec = parent["metadata"]["name"], parent["spec"]
    grown = parent.get("status", {}).get("replicas", 0)
    wanted, ready_replicas = 0, 0
    for i in range(spec.get("replicas", 0)):
        pod = pods.get(f"{name}-{i}")
        if pod or i < grown or i == ready_replicas:
            wanted = i + 1
        ready_replicas += bool(pod) and is_ready(pod)
    return {
        "status": {"replicas": wanted, "readyReplicas": ready_replicas},
        "children": [pod_of(spec, f"{name}-{i}") for i in reversed(range(wanted))],
    }


def is_ready(pod):
    conditions = pod.get("status", {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def pod_of(spec, name):
    """One pod of a CatSet."""
    template = spec["template"]
    metadata = template.get("metadata", {})
    labels = {"cat": name, **metadata.get("labels", {})}
    annotations = {"annotations": metadata["annotations"]} if "annotations" in metadata else {}
    subdomain = {"subdomain": spec["serviceName"]} if spec.get("serviceName") else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, **annotations},
        "spec": {"hostname": name, **subdomain, **template["spec"]},
    }


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(sync(request["parent"], request["children"].get("Pod.v1", {}))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8080").rpartition(":")
    ThreadingHTTPServer((host, int(port)), Hook).serve_forever()
