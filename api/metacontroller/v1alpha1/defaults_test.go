package v1alpha1

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// This file checks what a field that was left out stands for, in objects that no API server has seen.

func TestTimeout(t *testing.T) {
	for written, want := range map[string]time.Duration{
		`{}`: 10 * time.Second, `{"timeout":"3s"}`: 3 * time.Second, `{"timeout":"1m30s"}`: 90 * time.Second,
		`{"timeout":"0s"}`: 10 * time.Second, `{"timeout":"-1s"}`: 10 * time.Second, `{"timeout":"1 day"}`: 10 * time.Second,
	} {
		var w Webhook
		if err := json.Unmarshal([]byte(written), &w); err != nil {
			t.Fatal(err)
		}
		if got := w.EffectiveTimeout(); got != want {
			t.Errorf("%s: %s, want %s", written, got, want)
		}
	}
	if got := (*Webhook)(nil).EffectiveTimeout(); got != DefaultTimeout {
		t.Errorf("no webhook: %s", got)
	}
}

// TestStrict: the field is called responseUnMarshallMode, and without it the version decides.
func TestStrict(t *testing.T) {
	for written, want := range map[string]bool{
		`{}`:                            false,
		`{"version":"v1"}`:              false,
		`{"version":"v2"}`:              true,
		`{"version":"v2","webhook":{}}`: true,
		`{"version":"v1","webhook":{"responseUnMarshallMode":"strict"}}`: true,
		`{"version":"v2","webhook":{"responseUnMarshallMode":"loose"}}`:  false,
	} {
		var h Hook
		if err := json.Unmarshal([]byte(written), &h); err != nil {
			t.Fatal(err)
		}
		if got := h.Strict(); got != want {
			t.Errorf("%s: %t", written, got)
		}
	}
	if (*Hook)(nil).Strict() || (*Hook)(nil).EffectiveVersion() != HookVersionV1 {
		t.Error("no hook is one of version v1")
	}
}

func TestHistory(t *testing.T) {
	for _, c := range []struct {
		history *RevisionHistory
		paths   []string
		limit   int
	}{
		{nil, []string{"spec"}, 10},
		{&RevisionHistory{}, []string{"spec"}, 10},
		{&RevisionHistory{FieldPaths: []string{"a", "b"}, Limit: new(int32(0))}, []string{"a", "b"}, 0},
		{&RevisionHistory{Limit: new(int32(-3))}, []string{"spec"}, 0},
	} {
		if paths, limit := c.history.EffectiveFieldPaths(), c.history.EffectiveLimit(); !slices.Equal(paths, c.paths) || limit != c.limit {
			t.Errorf("%+v: %v, %d", c.history, paths, limit)
		}
	}
}

func TestMethod(t *testing.T) {
	var none *ChildUpdateStrategy
	var noneAttached *AttachmentUpdateStrategy
	for _, got := range []ChildUpdateMethod{
		none.EffectiveMethod(), (&ChildUpdateStrategy{}).EffectiveMethod(), noneAttached.EffectiveMethod(), (&AttachmentUpdateStrategy{}).EffectiveMethod(),
	} {
		if got != ChildUpdateOnDelete || got.Rolling() {
			t.Errorf("%s, want OnDelete", got)
		}
	}
	if got := (&ChildUpdateStrategy{Method: ChildUpdateRollingInPlace}).EffectiveMethod(); got != ChildUpdateRollingInPlace || !got.Rolling() {
		t.Errorf("%s rolls", got)
	}
	if got := (&AttachmentUpdateStrategy{Method: ChildUpdateRecreate}).EffectiveMethod(); got != ChildUpdateRecreate || got.Rolling() {
		t.Errorf("%s does not roll", got)
	}
}
