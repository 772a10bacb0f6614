package pass

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// This file sees what admission makes of children. Controllers know a child again by its owner and its labels. Where
// admission takes these away, each replacement would look like one more child to replace, for ever.

// trialEvery is how often a controller asks whether admission lets its children be by now.
const trialEvery = time.Minute

// AlteredError says what admission has made of a child. No child is replaced until it lets them be and, if what is
// created is lost to its parent at once, none is created either.
type AlteredError struct {
	What string
	Lost bool
}

// Error says so.
func (e *AlteredError) Error() string {
	return "admission changes what is created: " + e.What + "; until it does not, nothing is replaced"
}

// Unaltered returns an [AlteredError] if a parent would not know a child again as admission has made it: by its owner,
// by the selector, and by the wanted labels. It returns nil otherwise.
func Unaltered(parent, made client.Object, selector labels.Selector, wanted map[string]string) error {
	has := made.GetLabels()
	switch {
	case !selector.Matches(labels.Set(has)):
		return &AlteredError{What: "the selector does not match its labels", Lost: true}
	case !metav1.IsControlledBy(made, parent):
		return &AlteredError{What: "it has lost its owner reference", Lost: true}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if got, found := has[key]; got != wanted[key] || !found {
			return &AlteredError{What: fmt.Sprintf("label %s is %q and not %q", key, got, wanted[key])}
		}
	}
	return nil
}

// Lost reports whether what is created would be lost to its parent, for all that is known: see [AlteredError].
func Lost(err error) bool {
	altered, ok := errors.AsType[*AlteredError](err)
	return err != nil && (!ok || altered.Lost)
}

// Altered remembers what admission made of a child that was created, nil if it was let be: see [Children.Trial]. It may
// be called by several goroutines at once.
func (p *Pass) Altered(err error) {
	p.controller.mu.Lock()
	defer p.controller.mu.Unlock()
	p.memory.altered, p.memory.triedAt = err, p.Now()
}

// Kept deals with what admission has made of a child that was created: altered says what is wrong with it, nil if
// nothing is. It is remembered for [Children.Trial], and a child that is lost to its parent is deleted at once. The
// error is altered, joined with what went wrong.
func (ch *Children[C]) Kept(ctx context.Context, p *Pass, made C, altered error) error {
	if altered == nil {
		return nil
	}
	p.Altered(altered)
	var removed error
	if Lost(altered) {
		removed = ch.Remove(ctx, p, made, "admission has changed it")
	}
	return errors.Join(altered, removed)
}

// Trial finds out, before a pass creates or replaces children, whether admission lets them be. It asks by a dry run
// only if strange says that a child is there which the parent would not have made like that, or if admission was seen
// to alter one; and then once a minute at most. child is a new one, without a name if it could be taken; intact says
// what is wrong with what became of it.
//
// Where the API server refuses the dry run, by a quota for one, or does not answer, nothing new is known: what was not
// seen to be altered is let go on, and the answer to the first real create tells.
func (ch *Children[C]) Trial(ctx context.Context, p *Pass, strange bool, child C, intact func(made C) error) error {
	m := p.memory
	if !strange && m.altered == nil {
		return nil
	}
	if left := m.triedAt.Add(trialEvery).Sub(p.Now()); left > 0 {
		if m.altered != nil {
			p.RequeueAfter(left)
		}
		return m.altered
	}
	known := m.altered
	switch err := ch.Client.Create(ctx, child, client.DryRunAll); {
	case err == nil:
		known = intact(child)
	case known != nil:
		log.FromContext(ctx).V(1).Info("Admission cannot be tried", "refused", err.Error())
	}
	p.Altered(known)
	if known != nil {
		p.RequeueAfter(trialEvery)
	}
	return known
}
