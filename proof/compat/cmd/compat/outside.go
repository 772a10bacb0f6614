package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// outside changes manifests, as YAML, for a controller that is a process on the host of the API server. There is no
// Deployment or DaemonSet of it. The API server cannot reach the address of a Service; a Service with an external name
// it resolves to that name, and the certificate is still the one of the Service. The port is then that of the webhooks'
// configuration.
func outside(manifests string, port int) (string, error) {
	var out []string
	for text := range strings.SplitSeq(manifests, "\n---\n") {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			return "", fmt.Errorf("read what kustomize printed: %w", err)
		}
		switch o.GetKind() {
		case "Deployment", "DaemonSet":
			continue
		case "Service":
			o.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			if err := listensAt(&o, int64(port)); err != nil {
				return "", fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
		changed, err := yaml.Marshal(o.Object)
		if err != nil {
			return "", err
		}
		out = append(out, string(changed))
	}
	return strings.Join(out, "\n---\n"), nil
}

// listensAt writes the port into every webhook of a configuration.
func listensAt(o *unstructured.Unstructured, port int64) error {
	webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, w := range webhooks {
		webhook, ok := w.(map[string]any)
		if !ok {
			return fmt.Errorf("a webhook is %T", w)
		}
		if err := unstructured.SetNestedField(webhook, port, "clientConfig", "service", "port"); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(o.Object, webhooks, "webhooks")
}
