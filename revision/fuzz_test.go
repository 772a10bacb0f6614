package revision_test

// Stored data can be anything: anybody who may create a revision writes it. Decoding never panics, and what it accepts
// can be restored, taken again and stored again without becoming another content. Run longer with
//
//	go test ./revision -fuzz FuzzDecode -fuzztime 1m

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/cairn-dev/cairn/revision"
)

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "corpus", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{
		``, `null`, `[]`, `{}`, `{"spec":null}`, `{"spec":{"template":{}}}`, `{"spec":{"template":{"$patch":{}}}}`,
		`{"spec":{"template":{"x":-0.0,"y":1e400,"z":1e-400,"n":123456789012345678901234567890,"m":1e20}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":1e-9,"memory":"1.1Ki"}}}]}}}}`,
		`{"spec":{"template":{"spec":{"overhead":{"x":"12345678901234567890e100000"},"schedulerName":"1e99999999"}}}}`,
		`{"spec":{"template":{"spec":{"priority":2e1,"overhead":{"x":"9999999999999999999999E"}}},"settings":[[[]]]}}`,
		"{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"\xff\":\"\xc3\x28\",\"creationTimestamp\":null}}}}}",
		`{"spec":{"template":{"Metadata":{"Labels":{"a":"b"}},"metadata":{"labels":{"a":"c"}}}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, target := range []*revision.Target{typedTarget(), plainTarget(t)} {
			s, err := target.Decode(data)
			if err != nil {
				continue
			}
			wantSame(t, s, decode(t, target, string(data)))
			if !revision.Askable(s, s) {
				t.Errorf("differs from itself: %s", data)
			}
			restored, err := s.Restore(map[string]any{"status": map[string]any{}})
			if err != nil {
				t.Fatalf("cannot restore %s: %v", data, err)
			}
			again := snapshot(t, target, restored)
			wantSame(t, s, again)
			wantSame(t, s, decode(t, target, string(again.Data())))
		}
		if s, err := typedTarget().Decode(data); err == nil {
			if err := s.Into(&appsv1.DaemonSet{}); err != nil {
				t.Errorf("today's type reads %s for a comparison, but not to build children: %v", data, err)
			}
		}
	})
}
