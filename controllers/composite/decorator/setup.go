package decorator

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/controllers/composite/apply"
	"github.com/cairn-dev/cairn/ownership"
)

// This file wires the controllers.

// remembered is how many attachments of one DecoratorController are remembered beside what the cache holds.
const remembered = 4096

// newReconciler returns a Reconciler without hooks. It reads from cache and, past it, from live.
func newReconciler(
	s *settings, cache client.Reader, c client.Client, live client.Reader, ledger *ownership.Ledger, recorder events.EventRecorder,
) *Reconciler {
	r := &Reconciler{
		settings: s,
		cache:    cache,
		client:   c,
		live:     live,
		ledger:   ledger,
		recorder: recorder,
		related:  map[schema.GroupKind]relatedObjects{},
		writers:  map[schema.GroupKind]ownership.Writer{},
		fresh:    map[schema.GroupKind]*ownership.Confirmer{},
		memo:     apply.NewMemo(remembered),
		served:   newServings(remembered),
	}
	for _, a := range s.attachments {
		kind := a.Kind.GroupKind()
		r.writers[kind] = ownership.Writer{Client: c, Live: live, Ledger: ledger, Resource: a.Resource.GroupResource()}
		r.fresh[kind] = &ownership.Confirmer{Live: live, Children: a.Kind}
	}
	return r
}
