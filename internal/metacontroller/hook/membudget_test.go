package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// repeated returns an answer of about size bytes whose field has item over and over.
func repeated(size int, before, item, after string) []byte {
	var b bytes.Buffer
	b.WriteString(before)
	for n := size/(len(item)+1) - 1; n > 0; n-- {
		b.WriteString(item)
		b.WriteByte(',')
	}
	b.WriteString(item)
	b.WriteString(after)
	return b.Bytes()
}

// shapes are answers that take much more memory than their length says, and one that people have.
func shapes(size int) map[string][]byte {
	wide := bytes.NewBufferString(`{"children":[],"status":{`)
	for i := 0; wide.Len() < size; i++ {
		fmt.Fprintf(wide, `"%d":{},`, i)
	}
	wide.WriteString(`"last":0}}`)
	deep := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","labels":{"app":"web","tier":"front"}},"spec":` +
		`{"containers":[{"name":"main","image":"registry.example.com/web:1.27.3","ports":[{"containerPort":8080,"name":"http"}],` +
		`"env":[{"name":"GREETING","value":"hello to all of you"},{"name":"PORT","value":"8080"}],"resources":{"requests":` +
		`{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},"volumeMounts":[{"name":"data","mountPath":"/data"}]}],` +
		`"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data-web-0"}}],"terminationGracePeriodSeconds":30}}`
	return map[string][]byte{
		"numbers":               repeated(size, `{"children":[`, `1`, `]}`),
		"large numbers":         repeated(size, `{"children":[`, `1e9`, `]}`),
		"empty objects":         repeated(size, `{"children":[],"status":{"a":[`, `{}`, `]}}`),
		"small objects":         repeated(size, `{"children":[],"status":{"a":[`, `{"":1}`, `]}}`),
		"objects in objects":    repeated(size, `{"children":[],"status":{"a":[`, `{"":{"":{"":{}}}}`, `]}}`),
		"objects of ten fields": repeated(size, `{"children":[],"status":{"a":[`, `{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0}`, `]}}`),
		"empty lists":           repeated(size, `{"children":[],"status":{"a":[`, `[]`, `]}}`),
		"lists in lists":        repeated(size, `{"children":[],"status":{"a":[`, deep(400), `]}}`),
		"short strings":         repeated(size, `{"children":[],"status":{"a":[`, `""`, `]}}`),
		"strings":               repeated(size, `{"children":[],"status":{"a":[`, `"abcdefghijklm"`, `]}}`),
		"children of nothing":   repeated(size, `{"children":[`, `{}`, `]}`),
		"a wide status":         wide.Bytes(),
		"pods":                  repeated(size, `{"children":[],"status":{"a":[`, pod, `]}}`),
	}
}

// TestEstimate: what is decoded takes no more than was estimated, and not much less.
func TestEstimate(t *testing.T) {
	for name, body := range shapes(1 << 20) {
		t.Run(name, func(t *testing.T) {
			size, err := decodedSize(body)
			if err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var decoded map[string]any
			if err := json.Unmarshal(body, &decoded); err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			took := int64(after.HeapAlloc) - int64(before.HeapAlloc)
			runtime.KeepAlive(decoded)
			t.Logf("%d bytes of JSON take %d, %.1f times; estimated at %.1f times that", len(body), took,
				float64(took)/float64(len(body)), float64(size)/float64(took))
			if size < took || size > 4*took {
				t.Errorf("%d bytes of JSON take %d, and were estimated at %d", len(body), took, size)
			}
		})
	}
}

func TestTooDeep(t *testing.T) {
	for levels, want := range map[int]error{deepest: nil, deepest + 1: errTooDeep} {
		if _, err := decodedSize([]byte(strings.Repeat("[", levels))); err != want { //nolint:errorlint // that very one
			t.Errorf("%d levels: %v", levels, err)
		}
	}
	if _, failure := measure(bytes.Repeat([]byte("["), 16<<20)); failure == nil || failure.Reason != Malformed {
		t.Error(failure)
	}
}

// heap is how much of the heap is in use, garbage that was not collected yet included.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestMemoryOfAnswersIsBounded: whatever five hooks say at once, the process takes no more than 300 MB for it.
func TestMemoryOfAnswersIsBounded(t *testing.T) {
	var body []byte
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		answer := body
		mu.Unlock()
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		}
		_, _ = w.Write(answer)
	}))
	defer server.Close()
	memory := NewMemory(MostRemembered)
	hookAt := func(path string) *Hook {
		h, err := New(Options{
			Controller: Controller{Type: Composite, Name: "bomb", Object: json.RawMessage(`{}`), Children: []ChildKind{
				{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespaced: true},
			}},
			Kind: Sync, Declared: &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: new(server.URL + path), Timeout: new("1m")}}, Memory: memory,
			Guard: &Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
			Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }, Now: time.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	hooks := []*Hook{hookAt("/length"), hookAt("/chunked")}
	defer func() {
		for _, h := range hooks {
			h.Close()
		}
	}()
	debug.SetMemoryLimit(debug.SetMemoryLimit(-1)) // that of the environment, which is none
	const bound = 300 << 20
	for size, names := range map[int][]string{
		DefaultLimit - 1<<10: {"numbers", "empty objects", "a wide status"},                   // refused
		4 << 20:              {"large numbers", "pods", "strings"},                            // decoded one by one
		1 << 20:              {"numbers", "lists in lists", "short strings", "empty objects"}, // several at once, and kept
	} {
		of := shapes(size)
		for _, name := range names {
			answer := of[name]
			mu.Lock()
			body = answer
			mu.Unlock()
			took := int64(bound) + 1
			for tries := 0; took > bound && tries < 3; tries++ { // on a busy machine there is garbage in it
				runtime.GC()
				base, begun := heap(), time.Now()
				peak := make(chan uint64)
				done := make(chan struct{})
				go func() {
					var most uint64
					for {
						most = max(most, heap())
						select {
						case <-done:
							peak <- most
							return
						case <-time.After(time.Millisecond):
						}
					}
				}()
				var passes sync.WaitGroup
				for i := range 5 {
					passes.Go(func() {
						p := &unstructured.Unstructured{Object: map[string]any{}}
						p.SetUID(types.UID(fmt.Sprint(i)))
						p.SetResourceVersion("1")
						got, err := hooks[i%2].Ask(t.Context(), &Question{Parent: p, Again: true})
						runtime.KeepAlive(got)
						failure := new(Error)
						if errors.As(err, &failure) && failure.Reason == NoRoom {
							t.Error(err)
						}
					})
				}
				passes.Wait()
				close(done)
				took = int64(<-peak) - int64(base)
				t.Logf("%-22s of %5d KiB: %4d MiB, %s", name, size>>10, took>>20, time.Since(begun).Round(time.Millisecond))
			}
			if took > bound {
				t.Errorf("five hooks that answer with %s of %d KiB take %d MiB", name, size>>10, took>>20)
			}
		}
	}
}
