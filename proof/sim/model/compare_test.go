package model_test

// This file compares answers and objects of the model to those of the real API server.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/sim/model"
)

// errTaken says that another controller of the sandbox had a hand in it: the one that collects pods marks those as
// failed that are being deleted, were never bound and do not go. The rest of such a sequence proves nothing.
var errTaken = errors.New("the pod garbage collector took part")

// lookup finds an object of the real server; nil if there is none.
type lookup func(ctx context.Context, k model.Kind, name string) (m, error)

// now asks the server.
func (q *sequence) now(ctx context.Context, k model.Kind, name string) (m, error) {
	answer, err := q.real.do(ctx, model.Request{Verb: model.VerbGet, Resource: k.Resource, Namespace: q.namespace, Name: name}, nil)
	switch {
	case err != nil:
		return nil, err
	case answer.status.Code == http.StatusNotFound:
		return nil, nil //nolint:nilnil // says lookup
	case answer.status.Code != 0:
		return nil, errors.New(answer.status.Message)
	}
	return answer.body, nil
}

// compareState compares all objects of the sequence.
func (q *sequence) compareState(ctx context.Context, find lookup, versions bool) error {
	for _, k := range q.kinds {
		if err := q.compareKind(ctx, k, find, versions); err != nil {
			return err
		}
	}
	return nil
}

// compareKind compares all objects of a kind.
func (q *sequence) compareKind(ctx context.Context, k model.Kind, find lookup, versions bool) error {
	for i := range namesPerKind {
		name := fmt.Sprintf("%s%d", q.prefix, i)
		got := q.get(k, name)
		want, err := find(ctx, k, name)
		if err != nil {
			return err
		}
		if pod, ok := got.(*corev1.Pod); ok && want == nil && pod.Spec.NodeName != "" {
			return errTaken // its node does not exist, which is noticed in the end
		}
		if (got == nil) != (want == nil) {
			return fmt.Errorf("%s %s: the model has it: %t, the server: %t", k.Resource.Resource, name, got != nil, want != nil)
		}
		if got == nil {
			continue
		}
		if err := q.compareObject(k, got, want, versions); err != nil {
			return err
		}
	}
	return nil
}

// compareItems compares the answers to a list.
func (q *sequence) compareItems(k model.Kind, got []client.Object, want []any) error {
	var names, wantNames []string
	for _, object := range got {
		names = append(names, object.GetName())
	}
	for _, item := range want {
		name, _, _ := unstructured.NestedString(item.(m), "metadata", "name")
		wantNames = append(wantNames, name)
	}
	if !slices.Equal(names, wantNames) {
		return fmt.Errorf("%s: the model has %v, the server %v", k.Resource.Resource, names, wantNames)
	}
	for i := range got {
		if err := q.compareObject(k, got[i], want[i].(m), true); err != nil {
			return err
		}
	}
	return nil
}

// compareObject compares an object, and whether its resource version has changed since it was last compared.
func (q *sequence) compareObject(k model.Kind, got client.Object, want m, versions bool) error {
	uid := string(got.GetUID())
	wantUID, _, _ := unstructured.NestedString(want, "metadata", "uid")
	if q.realUID[uid] == "" {
		q.realUID[uid], q.modelUID[wantUID] = wantUID, uid
	}
	if failed(want) && !failed(contentOf(got)) {
		return errTaken
	}
	a, err := q.normal(k, got, false)
	if err != nil {
		return err
	}
	b, err := q.normal(k, objectOf(k, maps.Clone(want)), true)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("%s %s differs:\n%s", k.Resource.Resource, got.GetName(), strings.Join(differences("", a, b), "\n"))
	}
	wantRV, _, _ := unstructured.NestedString(want, "metadata", "resourceVersion")
	now := [2]string{got.GetResourceVersion(), wantRV}
	last, seen := q.last[uid]
	managed := fmt.Sprint(managers(want))
	onlyManaged := now[0] == last[0] && managed != q.managed[uid]
	if versions && seen && (last[0] != now[0]) != (last[1] != now[1]) && !onlyManaged {
		return fmt.Errorf("%s %s: resource versions went from %v to %v (model, server)", k.Resource.Resource, got.GetName(), last, now)
	}
	if got.GetResourceVersion() != "" {
		q.last[uid], q.managed[uid] = now, managed
		q.realRV[now[0]] = now[1]
		if last != now {
			q.stale[got.GetUID()] = append(q.stale[got.GetUID()], now[0])
		}
	}
	return nil
}

// failed tells whether an object is a pod that is being deleted and has failed.
func failed(object m) bool {
	phase, _, _ := unstructured.NestedString(object, "status", "phase")
	_, deleting, _ := unstructured.NestedString(object, "metadata", "deletionTimestamp")
	return deleting && phase == string(corev1.PodFailed)
}

// normal is the content of an object without what may differ.
func (q *sequence) normal(k model.Kind, object client.Object, theirs bool) (m, error) {
	object = object.DeepCopyObject().(client.Object)
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	if wired, ok := object.(interface {
		Marshal() ([]byte, error)
		Unmarshal(data []byte) error
	}); ok {
		data, err := wired.Marshal()
		if err != nil {
			return nil, err
		}
		object = reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
		if err := object.(interface{ Unmarshal(data []byte) error }).Unmarshal(data); err != nil {
			return nil, err
		}
	}
	content := contentOf(object)
	delete(content, "apiVersion")
	delete(content, "kind")
	if k.Resource.Group == widget.Resource.Group {
		data, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		content = nil
		if err := utiljson.Unmarshal(data, &content); err != nil {
			return nil, err
		}
	}
	walkJSON(content, func(name string, value string) string {
		switch {
		case strings.HasSuffix(name, "Timestamp"), strings.HasSuffix(name, "Time"):
			return "some time"
		case name == "uid" && theirs && q.modelUID[value] != "":
			return q.modelUID[value]
		default:
			return value
		}
	})
	return content, nil
}

// compareStatus compares how two requests failed.
func compareStatus(got error, want metav1.Status) error {
	var refused apierrors.APIStatus
	status := metav1.Status{}
	if errors.As(got, &refused) {
		status = refused.Status()
	} else if got != nil {
		return fmt.Errorf("the model's error is no status: %w", got)
	}
	if status.Code != want.Code || status.Reason != want.Reason || !slices.Equal(causes(status), causes(want)) {
		return fmt.Errorf("the model answers %d %q %s %v, the server %d %q %s %v", status.Code, status.Reason, status.Message, causes(status), want.Code, want.Reason, want.Message, causes(want))
	}
	return nil
}

// causes are what a refusal blames.
func causes(s metav1.Status) []string {
	if s.Details == nil {
		return nil
	}
	var blamed []string
	for _, cause := range s.Details.Causes {
		blamed = append(blamed, string(cause.Type)+" "+cause.Field)
	}
	slices.Sort(blamed)
	return blamed
}

// managers are the managed fields of an object, which the model does not have. A write may change nothing else.
func managers(object m) []any {
	entries, _, _ := unstructured.NestedSlice(object, "metadata", "managedFields")
	for _, entry := range entries {
		delete(entry.(m), "time")
	}
	return entries
}

func sortedKeys(object m) []string { return slices.Sorted(maps.Keys(object)) }

// differences are the leaves in which two values differ.
func differences(path string, a, b any) []string {
	x, okA := a.(m)
	y, okB := b.(m)
	if !okA || !okB {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []string{fmt.Sprintf("%s: the model has %v, the server %v", path, a, b)}
	}
	names := maps.Clone(x)
	maps.Copy(names, y)
	var found []string
	for _, name := range sortedKeys(names) {
		_, inX := x[name]
		if _, inY := y[name]; inX != inY {
			found = append(found, fmt.Sprintf("%s.%s: the model has it: %t, the server: %t; %v, %v", path, name, inX, inY, x[name], y[name]))
			continue
		}
		found = append(found, differences(path+"."+name, x[name], y[name])...)
	}
	return found
}
