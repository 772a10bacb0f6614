package check

import (
	"fmt"
	"net/http"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
)

// This file holds the rules about requests that did not do what they were meant to: H5 for names that are taken, and A3
// for failures that are repeated in haste.

const (
	// mostFailures is how many failures with one object a process may have within a second. A back-off that doubles from
	// five milliseconds has eight.
	mostFailures = 50
)

// collision is H5: the collision count rises only past names that somebody else had. The name of a revision follows
// from its data and the count, so that the names which were passed over are known; a lost response finds the parent's
// own revision under its name, and passes over none.
func (s *step) collision() {
	if !s.of(s.k.Parents) || s.k.Named == nil || s.e.Old == nil || !s.byManager() {
		return
	}
	before, now := collisionsOf(s.e.Old), collisionsOf(s.e.New)
	if now == nil || before != nil && *before >= *now {
		return
	}
	if *now == 0 {
		return // no count and none are the same; the built-in StatefulSet controller writes a zero
	}
	recorded := s.recordedAs(*now)
	if recorded == nil {
		return // its names follow another rule
	}
	for count := before; count == nil || *count < *now; {
		name := s.k.Named(s.e.New, recorded, count)
		if !s.taken(Key{Resource: s.k.Revisions, Namespace: s.e.Key.Namespace, Name: name}, recorded) {
			s.violationf("H5", "its collision count rises to %d, and nobody but its own revision ever had the name %s", *now, name)
			return
		}
		next := int32(1)
		if count != nil {
			next = *count + 1
		}
		count = &next
	}
}

// collisionsOf is the collision count in the status of a Go type, nil if there is none.
func collisionsOf(o client.Object) *int32 {
	status := reflect.Indirect(reflect.ValueOf(content.Field(o, []string{"status"})))
	if status.Kind() != reflect.Struct {
		return nil
	}
	count := status.FieldByName("CollisionCount")
	if !count.IsValid() {
		return nil
	}
	out, _ := reflect.TypeAssert[*int32](count)
	return out
}

// recordedAs returns the parent's revision that got its name under a collision count, nil if there is none.
func (s *step) recordedAs(count int32) client.Object {
	for e := range s.record.before(s.e.New.GetUID(), s.e.RV) {
		if e.Key.Resource != s.k.Revisions || e.New == nil || ownerUID(e.New) != s.e.New.GetUID() {
			continue
		}
		if s.k.Named(s.e.New, e.New, &count) == e.New.GetName() {
			return e.New
		}
	}
	return nil
}

// taken reports whether anything but an equal revision of the same parent ever had a name.
func (s *step) taken(k Key, recorded client.Object) bool {
	want, err := s.k.Snapshot(recorded)
	if err != nil {
		return true
	}
	for _, m := range s.record.moments[k] {
		if m.rv >= s.e.RV || m.object == nil {
			continue
		}
		snapshot, err := s.k.Snapshot(m.object)
		if err != nil || snapshot != want || ownerUID(m.object) != ownerUID(recorded) {
			return true
		}
	}
	return false
}

// hasty is A3: a write that fails is repeated after a pause. Conflicts and names that are taken are answers, not
// failures.
func hasty(h *History) []Violation {
	type target struct {
		instance, verb string
		key            Key
	}
	var found []Violation
	recent, said := map[target][]time.Time{}, map[target]bool{}
	for i := range h.Refused {
		r := &h.Refused[i]
		if r.At.IsZero() || r.Resource == "events" || r.Code == http.StatusConflict || r.Code == http.StatusNotFound ||
			h.Manager != nil && !h.Manager(&r.Entry) {
			continue
		}
		t := target{verb: r.Verb, key: Key{Namespace: r.Namespace, Name: r.Name}}
		t.key.Resource.Group, t.key.Resource.Resource = r.Group, r.Resource
		if r.Pass != nil {
			t.instance = r.Pass.Instance
		}
		recent[t] = append(recent[t], r.At)
		for r.At.Sub(recent[t][0]) > time.Second {
			recent[t] = recent[t][1:]
		}
		if len(recent[t]) > mostFailures && !said[t] {
			said[t] = true
			found = append(found, Violation{
				Invariant: "A3", Object: t.key, RV: r.After, Replay: h.Replay,
				Sentence: fmt.Sprintf("%s failed %d times within a second, last with %d", r.Verb, len(recent[t]), r.Code),
			})
		}
	}
	return found
}
