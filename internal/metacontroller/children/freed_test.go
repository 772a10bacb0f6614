package children

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	body, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = o.UnmarshalJSON(body)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestReleased: a trial does not ask for what the child holds, and does ask for all else: that may be somebody else's.
func TestReleased(t *testing.T) {
	const held = `{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], healthCheckNodePort: 3, ports: [{port: 80, nodePort: 1}, {port: 81, nodePort: 2}]}}`
	for name, c := range map[string]struct{ wanted, want string }{
		"its own":            {`{clusterIP: 10.0.0.1, healthCheckNodePort: 3, ports: [{port: 80, nodePort: 1}]}`, `map[ports:[map[port:80]]]`},
		"its own, in a list": {`{clusterIPs: [10.0.0.1]}`, `map[]`},
		"moved":              {`{ports: [{port: 80, nodePort: 2}]}`, `map[ports:[map[port:80]]]`},
		"others": {
			`{clusterIP: 10.0.0.2, healthCheckNodePort: 4, ports: [{port: 80, nodePort: 5}]}`,
			`map[clusterIP:10.0.0.2 healthCheckNodePort:4 ports:[map[nodePort:5 port:80]]]`,
		},
		"none": {`{clusterIP: None, ports: [{port: 80}]}`, `map[clusterIP:None ports:[map[port:80]]]`},
	} {
		t.Run(name, func(t *testing.T) {
			o := parse(t, `{apiVersion: v1, kind: Service, spec: `+c.wanted+`}`)
			if got := fmt.Sprint(released(o, parse(t, held)).Object["spec"]); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	other := parse(t, `{apiVersion: example.com/v1, kind: Service, spec: {clusterIP: 10.0.0.1}}`)
	if got := fmt.Sprint(released(other, parse(t, held)).Object["spec"]); got != "map[clusterIP:10.0.0.1]" {
		t.Errorf("another kind of that name: %s", got)
	}
}

// TestFits: a quota that is full has room for a child as large as the one that goes, and for no larger one.
func TestFits(t *testing.T) {
	const (
		pod     = `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, resources: {requests: {cpu: 500m}, limits: {memory: 1Gi}}}]}}`
		over    = `{apiVersion: v1, kind: Pod, status: {phase: Succeeded}, spec: {containers: [{name: a}]}}`
		service = `{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: [{port: 1}, {port: 2}]}}`
		claim   = `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 1Gi}}}}`
		config  = `{apiVersion: v1, kind: ConfigMap}`
	)
	for _, c := range []struct {
		child, requested, used, limit string
		fits                          bool
	}{
		{config, "configmaps=1", "configmaps=3", "configmaps=3", true},
		{config, "count/configmaps=1", "count/configmaps=3", "count/configmaps=3", true},
		{config, "configmaps=1", "configmaps=4", "configmaps=3", false}, // the quota was lowered
		{pod, "pods=1", "pods=3", "pods=3", true},
		{over, "pods=1", "pods=3", "pods=3", false}, // it does not count any more
		{over, "count/pods=1", "count/pods=3", "count/pods=3", true},
		{pod, "requests.cpu=500m", "requests.cpu=2", "requests.cpu=2", true},
		{pod, "cpu=500m", "cpu=2", "cpu=2", true},
		{pod, "cpu=600m", "cpu=2", "cpu=2", false},
		{pod, "pods=1,cpu=600m", "pods=3,cpu=2", "pods=3,cpu=2", false},
		{pod, "limits.memory=1Gi", "limits.memory=2Gi", "limits.memory=2Gi", true},
		{pod, "limits.cpu=1", "limits.cpu=2", "limits.cpu=2", false},
		{service, "services.nodeports=2", "services.nodeports=4", "services.nodeports=4", true},
		{service, "services.nodeports=3", "services.nodeports=4", "services.nodeports=4", false},
		{service, "services.loadbalancers=1", "services.loadbalancers=1", "services.loadbalancers=1", false},
		{claim, "requests.storage=1Gi", "requests.storage=9Gi", "requests.storage=9Gi", true},
		{claim, "requests.storage=2Gi", "requests.storage=9Gi", "requests.storage=9Gi", false},
		{claim, "x.storageclass.storage.k8s.io/requests.storage=1Gi", "x.storageclass.storage.k8s.io/requests.storage=9Gi", "x.storageclass.storage.k8s.io/requests.storage=9Gi", false},
	} {
		text := fmt.Sprintf("exceeded quota: q, requested: %s, used: %s, limited: %s", c.requested, c.used, c.limit)
		excess := quota(apierrors.NewForbidden(podResource, "a", errors.New(text)))
		if len(excess) == 0 {
			t.Fatalf("%s is not understood", text)
		}
		if got := fits(excess, parse(t, c.child)); got != c.fits {
			t.Errorf("%s: %s: %v", c.child, text, got)
		}
	}
	if fits(nil, parse(t, config)) {
		t.Error("a refusal for another reason fits")
	}
}
