#!/usr/bin/env python3
"""The hook of the CatSet example, without dependencies: it answers what pods a CatSet wants.

It gives the same answers as examples/catset/go; a test compares them.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def sync(parent, pods):
    """What a CatSet wants: pods 0 to replicas-1, the last one first.

    While it grows, a new pod is wanted once all before it are ready; one that is there stays, whatever the others do.
    """
    name, spec = parent["metadata"]["name"], parent["spec"]
    wanted, ready_replicas, all_ready = 0, 0, True
    for i in range(spec.get("replicas", 0)):
        pod = pods.get(f"{name}-{i}")
        if pod or all_ready:
            wanted = i + 1
        ready = bool(pod) and is_ready(pod)
        ready_replicas += ready
        all_ready = all_ready and ready
    return {
        "status": {"replicas": len(pods), "readyReplicas": ready_replicas},
        "children": [pod_of(spec, f"{name}-{i}") for i in reversed(range(wanted))],
    }


def is_ready(pod):
    conditions = pod.get("status", {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def pod_of(spec, name):
    """One pod of a CatSet."""
    template = spec["template"]
    labels = {"cat": name, **template.get("metadata", {}).get("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"hostname": name, "subdomain": spec.get("serviceName", ""), **template["spec"]},
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
