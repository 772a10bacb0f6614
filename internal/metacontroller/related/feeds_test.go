package related

import (
	"context"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is a cache whose events a test feeds.

// feeds is a cache of informers that the test feeds.
type feeds struct {
	cache.Cache

	mu        sync.Mutex
	sources   map[schema.GroupVersionKind]*slowSource
	informers map[schema.GroupVersionKind]toolscache.SharedIndexInformer
	failures  map[schema.GroupVersionKind]error
}

// slowSource lists when it is told to.
type slowSource struct {
	*cachetesting.FakeControllerSource

	listed chan struct{}
}

func (s *slowSource) List(o metav1.ListOptions) (runtime.Object, error) {
	<-s.listed
	return s.FakeControllerSource.List(o)
}

// of returns the source of a kind, which lists at once.
func (f *feeds) of(kind schema.GroupVersionKind) *slowSource {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sources[kind]
	if s == nil {
		s = &slowSource{cachetesting.NewFakeControllerSource(), make(chan struct{})}
		close(s.listed)
		f.sources[kind] = s
	}
	return s
}

func (f *feeds) GetInformer(ctx context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	kind := o.GetObjectKind().GroupVersionKind()
	source := f.of(kind)
	f.mu.Lock()
	defer f.mu.Unlock()
	informer := f.informers[kind]
	if informer == nil {
		informer = toolscache.NewSharedIndexInformer(source, o, 0, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
		f.informers[kind] = informer
		go informer.RunWithContext(ctx)
	}
	return informer, nil
}

// watched are the kinds that there are informers for.
func (f *feeds) watched() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for kind := range f.informers {
		out = append(out, kind.Kind)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (f *feeds) Failure(o client.Object) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failures[o.GetObjectKind().GroupVersionKind()]
}

func (f *feeds) fail(kind schema.GroupVersionKind, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures[kind] = err
}
