package check_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file reads what controllers ask for and do not get, from the wire and from the audit log.

// refusing is a server that takes nothing.
type refusing struct{}

func (refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusUnprocessableEntity, Request: request, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","code":422}`)),
	}, nil
}

func TestTheWireReadsCountersBelowZero(t *testing.T) {
	set := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(-5))}, // is no status
		Status:     appsv1.StatefulSetStatus{Replicas: 1, CurrentReplicas: -1, UpdatedReplicas: -2},
	}
	var proto bytes.Buffer
	if err := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme).Encode(set, &proto); err != nil {
		t.Fatal(err)
	}
	json, err := runtime.Encode(clientgoscheme.Codecs.LegacyCodec(appsv1.SchemeGroupVersion), set)
	if err != nil {
		t.Fatal(err)
	}
	const status = "/apis/apps/v1/namespaces/ns/statefulsets/db/status"
	const both = "currentReplicas is -1 and updatedReplicas is -2"
	for name, test := range map[string]struct {
		method, path, body, want string
	}{
		"protobuf":          {http.MethodPut, status, proto.String(), both},
		"JSON":              {http.MethodPut, status, string(json), both},
		"a patch":           {http.MethodPatch, status, `{"status":{"deep":{"n":-3},"list":[1]}}`, "deep.n is -3"},
		"a custom resource": {http.MethodPut, "/apis/x.io/v1/namespaces/ns/things/a/status", `{"apiVersion":"x.io/v1","kind":"Thing","status":{"n":-1}}`, "n is -1"},
		"no status":         {http.MethodPut, strings.TrimSuffix(status, "/status"), string(json), ""},
		"nothing below":     {http.MethodPatch, status, `{"status":{"n":1}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			wire := &recording.Wire{User: manager}
			request, err := http.NewRequestWithContext(t.Context(), test.method, "https://server"+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			response, err := wire.Wrap(refusing{}).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			if err := response.Body.Close(); err != nil {
				t.Fatal(err)
			}
			got := wire.Entries()
			if len(got) != 1 || got[0].Negative != test.want || got[0].Code != http.StatusUnprocessableEntity {
				t.Errorf("got %+v, want %q", got, test.want)
			}
		})
	}
}

func TestTheAuditLogTellsOfCountersBelowZero(t *testing.T) {
	const line = `{"stage":"ResponseComplete","verb":"update","user":{"username":"u"},"responseStatus":{"code":422},` +
		`"objectRef":{"apiGroup":"apps","resource":"statefulsets","subresource":"status","namespace":"ns","name":"db"},` +
		`"requestObject":{"kind":"StatefulSet","apiVersion":"apps/v1","status":{"currentReplicas":-1}}}`
	got, err := recording.ParseAudit(strings.NewReader(line))
	if err != nil || len(got) != 1 || got[0].Negative != "currentReplicas is -1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A violation of this kind has no resource version of its own: it stands where the controller was.
func TestARefusalStandsAfterTheLastWrite(t *testing.T) {
	w := newStateful(t)
	w.report("db-r1", "db-r1")
	wrote := w.rv
	w.unready("db-0")
	h := w.history()
	status := check.Entry{
		User: manager, Verb: "update", Group: "apps", Resource: "statefulsets", Namespace: namespace, Name: "db", Subresource: "status",
	}
	taken, refused := status, status
	taken.Code, taken.RV = http.StatusOK, wrote
	refused.Code, refused.Negative = http.StatusUnprocessableEntity, "currentReplicas is -1"
	h.Attach([]check.Entry{taken, refused}, func(e *check.Entry) bool { return e.User == manager })
	got := check.Check(h, parents.StatefulSet())
	if len(got) != 1 || got[0].RV != wrote || len(got[0].Trail) == 0 {
		t.Errorf("want one violation at %d, got:\n%s", wrote, story(got))
	}
}
