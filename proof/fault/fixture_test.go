package fault_test

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file is a small API server for the tests of the transport, which want to know what arrived, and the sandbox for
// those that want the real one.

const nodes = 3

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	// The tests that run beside each other mostly wait. How many labs there are at once is bounded in lab_test.go.
	if err := flag.Set("test.parallel", "16"); err != nil { // what the command line says comes later, and counts
		panic(err)
	}
	os.Exit(sandboxtest.Main(m, sandbox.Options{Nodes: nodes, Replaced: sandbox.Kinds()}))
}

var (
	configMaps  = schema.GroupResource{Resource: "configmaps"}
	mediaTypes  = []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf}
	eachMedia   = map[string]string{"json": runtime.ContentTypeJSON, "protobuf": runtime.ContentTypeProtobuf}
	watchOption = metav1.ListOptions{Watch: true}
)

// server remembers what arrives. It stores nothing: a create gets back what it sent, a watch gets what send sends.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	arrived []string
	watches chan *sender
}

// sender is the server's end of a watch.
type sender struct {
	events chan watch.Event
	done   <-chan struct{}
}

func (s *sender) send(t *testing.T, kind watch.EventType, name string) {
	t.Helper()
	select {
	case s.events <- watch.Event{Type: kind, Object: configMap(name)}:
	case <-s.done:
		t.Fatalf("the watch ended before %s %s was sent", kind, name)
	}
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{watches: make(chan *sender, 4)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) serve(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	s.mu.Lock()
	s.arrived = append(s.arrived, req.Method+" "+req.URL.Path)
	s.mu.Unlock()
	if req.URL.Query().Get("watch") == "true" {
		s.watch(w, req)
		return
	}
	if req.Method == http.MethodPost {
		w.Header().Set("Content-Type", req.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, bytes.NewReader(body))
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_ = clientgoscheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion).Encode(configMap("answer"), w)
}

func (s *server) watch(w http.ResponseWriter, req *http.Request) {
	mediaType := runtime.ContentTypeJSON
	if strings.Contains(req.Header.Get("Accept"), "protobuf") {
		mediaType = runtime.ContentTypeProtobuf
	}
	info, _ := runtime.SerializerInfoForMediaType(clientgoscheme.Codecs.SupportedMediaTypes(), mediaType)
	w.Header().Set("Content-Type", mediaType+";stream=watch")
	w.WriteHeader(http.StatusOK)
	flush := w.(http.Flusher).Flush
	flush()
	encoder := restwatch.NewEncoder(
		streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(w), info.StreamSerializer.Serializer),
		clientgoscheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion))
	end := &sender{events: make(chan watch.Event), done: req.Context().Done()}
	s.watches <- end
	for {
		select {
		case event := <-end.events:
			_ = encoder.Encode(&event)
			flush()
		case <-end.done:
			return
		}
	}
}

// requests returns what has arrived so far.
func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.arrived...)
}

// client returns a client of the server whose requests pass through the injector.
func (s *server) client(t *testing.T, in *fault.Injector, mediaType string) *kubernetes.Clientset {
	t.Helper()
	cfg := &rest.Config{Host: s.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: mediaType, AcceptContentTypes: mediaType}}
	cfg.Wrap(in.Wrap)
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
	}
}
