package children

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/ownership"
)

// This file holds what the passes of one controller share.

// Config is what a [Keeper] works with. All fields are required unless they say otherwise.
type Config struct {
	// Client writes, Live reads past every cache, and Cache is what passes read their parents from.
	Client      client.Client
	Live        client.Reader
	Cache       client.Reader
	Consistency *ownership.ConsistencyStore
	// Clock is the real one if it is nil.
	Clock clock.PassiveClock
	// FieldManager, unless it is empty, is the name under which children are kept by server-side apply.
	FieldManager string
	// Kinds are those that children may have.
	Kinds *Kinds
	// Size is for how many children something is remembered, and Memo remembers what they were compared with. Keepers may
	// share one; nil means one of its own.
	Size int
	Memo *apply.Memo
}

// servedSize is for how many children at most it is remembered what the API server makes of them: whole objects.
const servedSize = 4096

// Keeper keeps the children of the parents of one controller. It is safe for concurrent use. Make one with [New].
type Keeper struct {
	Config

	// creates is the client that creates children.
	creates client.Client
	applier *applier   // nil if children are changed by merge patches
	served  *lru.Cache // of serving, by the child's UID
	leaves  *leaves
	refused refusals
}

// serving is what the API server makes of a desired child.
type serving struct {
	desired map[string]any
	object  apply.Served
}

// New returns a keeper that remembers nothing yet.
func New(c Config) *Keeper {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Memo == nil {
		c.Memo = apply.NewMemo(apply.MemoBytes)
	}
	k := &Keeper{
		Config: c, creates: c.Client,
		served: lru.New(min(c.Size, servedSize)), leaves: newLeaves(),
		refused: refusals{lru.New(min(c.Size, servedSize))},
	}
	if c.FieldManager != "" {
		k.applier = newApplier(c.Client, c.Live, c.FieldManager, c.Size)
		k.creates = k.applier.creator()
	}
	return k
}

// Applies reports whether children are kept by server-side apply.
func (k *Keeper) Applies() bool { return k.applier != nil }

// Forget drops what is remembered of a deleted child. Otherwise that of every child that ever existed would be kept
// until the memory is full.
func (k *Keeper) Forget(child types.UID) {
	k.Memo.Forget(child)
	k.served.Remove(child)
	k.refused.forget(child)
}

// Of returns the [Pass] for the children of one parent. kind is the parent's, for owner references.
func (k *Keeper) Of(names Names, kind schema.GroupVersionKind) *Pass {
	return &Pass{Keeper: k, names: names, owner: *metav1.NewControllerRef(names.Parent, kind), answers: map[asked]Verdict{}}
}

// Pass compares and writes the children of one parent. It is for one goroutine.
type Pass struct {
	*Keeper

	names Names
	owner metav1.OwnerReference
	// answers are the verdicts from requests of this pass.
	answers map[asked]Verdict
}

// parent is the object as it was read.
func (p *Pass) parent() *unstructured.Unstructured { return p.names.Parent }

func (p *Pass) writer(o *unstructured.Unstructured) ownership.Writer {
	w := p.Kinds.Of(o.GroupVersionKind().GroupKind()).Writer
	w.Client = p.creates
	return w
}

// wrote makes the next pass wait until the cache shows a child as the API server returned it.
func (p *Pass) wrote(o *unstructured.Unstructured) {
	p.Consistency.WroteAt(p.parent().GetUID(), p.writer(o).Resource, o)
}

// made returns a desired child as it is created.
func (p *Pass) made(desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if p.applier != nil {
		return p.applied(desired), nil
	}
	content, err := apply.New(desired.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", p.names.Describe(desired), err)
	}
	// The API server's answer is decoded over it, and the hook's answer is shared.
	o := (&unstructured.Unstructured{Object: content}).DeepCopy()
	o.SetOwnerReferences(p.owners(desired))
	return o, nil
}

// applied returns what is applied of a desired child by server-side apply.
func (p *Pass) applied(desired *unstructured.Unstructured) *unstructured.Unstructured {
	return ownedBy(desired, p.owners(desired))
}

// owners are the owner references that a hook asked for, and the parent. A hook may not set a second controller (O1).
func (p *Pass) owners(desired *unstructured.Unstructured) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for _, ref := range desired.GetOwnerReferences() {
		if (ref.Controller == nil || !*ref.Controller) && ref.UID != p.owner.UID {
			out = append(out, ref)
		}
	}
	return append(out, p.owner)
}
