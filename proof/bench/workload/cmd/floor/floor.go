package main

// This file is the loop: it looks once for all that has happened meanwhile.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// inFlight is how many requests are under way at once.
	inFlight = 50
	// statusEvery is how often a status is written at most before all is done.
	statusEvery = time.Second
)

// floor looks after all parents of a kind.
type floor struct {
	client    kubernetes.Interface
	factory   informers.SharedInformerFactory
	parents   informed
	pods      corelisters.PodLister
	wake      chan struct{}
	mu        sync.Mutex
	asked     map[string]bool // what was asked for by name, and is not yet seen
	recorded  map[string]bool
	statusAt  map[string]time.Time
	lastWrote map[string][4]int64
}

func newFloor(client kubernetes.Interface, kind string) (*floor, error) {
	read, ok := kinds[kind]
	if !ok {
		return nil, fmt.Errorf("no kind %q", kind)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	f := &floor{
		client: client, factory: factory, parents: read(client, factory), wake: make(chan struct{}, 1),
		asked: map[string]bool{}, recorded: map[string]bool{}, statusAt: map[string]time.Time{}, lastWrote: map[string][4]int64{},
	}
	pods := factory.Core().V1().Pods()
	f.pods = pods.Lister()
	factory.Apps().V1().ControllerRevisions().Informer()
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: f.seen, DeleteFunc: f.seen, UpdateFunc: func(any, any) { f.look() },
	})
	_, err2 := f.parents.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { f.look() }, UpdateFunc: func(any, any) { f.look() },
	})
	return f, errors.Join(err, err2)
}

// seen takes down that a request for a pod has had its effect.
func (f *floor) seen(o any) {
	if key, err := cache.DeletionHandlingObjectToName(o); err == nil {
		f.mu.Lock()
		delete(f.asked, key.String())
		f.mu.Unlock()
	}
	f.look()
}

func (f *floor) look() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *floor) run(ctx context.Context) error {
	f.factory.Start(ctx.Done())
	f.factory.WaitForCacheSync(ctx.Done())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		}
		for _, o := range f.parents.informer.GetStore().List() {
			p, ok := f.parents.read(o)
			if !ok || p.GetDeletionTimestamp() != nil {
				continue
			}
			if err := f.pass(ctx, p); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// pass does what is to be done for one parent by now.
func (f *floor) pass(ctx context.Context, p *parent) error {
	if err := f.record(ctx, p); err != nil {
		return err
	}
	var all, updated, ready int32
	var old []*corev1.Pod
	w := work{floor: f}
	for n := range p.pods {
		pod, err := f.pods.Pods(p.GetNamespace()).Get(p.name(n))
		asked := f.under(p.GetNamespace() + "/" + p.name(n))
		switch {
		case err != nil && !asked:
			w.add(p.GetNamespace()+"/"+p.name(n), func() error { return f.create(ctx, p.pod(n)) })
		case err == nil:
			all++
			if serves(pod) && !asked {
				ready++
			}
			if pod.Spec.Containers[0].Image == p.template.Spec.Containers[0].Image {
				updated++
			} else if !asked {
				old = append(old, pod)
			}
		}
	}
	old = old[:min(len(old), int(max(0, p.unavailable-(p.pods-ready))))]
	if p.pods == 0 { // all of them at once
		old = f.owned(p)
		all = int32(len(old))
	}
	for _, pod := range old {
		w.add(pod.Namespace+"/"+pod.Name, func() error { return f.remove(ctx, pod) })
	}
	return errors.Join(w.do(), f.report(ctx, p, all, updated, ready))
}

// owned returns the pods of a parent.
func (f *floor) owned(p *parent) (out []*corev1.Pod) {
	for _, o := range f.factory.Core().V1().Pods().Informer().GetStore().List() {
		if pod, ok := o.(*corev1.Pod); ok && metav1.IsControlledBy(pod, p) {
			out = append(out, pod)
		}
	}
	return out
}

// work is the requests of a pass.
type work struct {
	*floor

	requests []func() error
}

// add adds a request about a pod, unless there is one under way.
func (w *work) add(name string, request func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.asked[name] {
		w.asked[name] = true
		w.requests = append(w.requests, request)
	}
}

func (w *work) do() error {
	var group errgroup.Group
	group.SetLimit(inFlight)
	for _, request := range w.requests {
		group.Go(request)
	}
	return group.Wait()
}

// under reports whether a request about a pod is under way, or its effect not yet seen.
func (f *floor) under(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[name]
}

func (f *floor) create(ctx context.Context, pod *corev1.Pod) error {
	_, err := f.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func (f *floor) remove(ctx context.Context, pod *corev1.Pod) error {
	return f.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: new(pod.UID)},
	})
}

// record stores the template of a new generation.
func (f *floor) record(ctx context.Context, p *parent) error {
	revision, err := p.revision()
	if err != nil || !p.recorded || f.recorded[revision.Name] {
		return err
	}
	f.recorded[revision.Name] = true
	_, err = f.client.AppsV1().ControllerRevisions(p.GetNamespace()).Create(ctx, revision, metav1.CreateOptions{})
	return err
}

// report writes the status: at once when all is done, else once a second.
func (f *floor) report(ctx context.Context, p *parent, all, updated, ready int32) error {
	now, key := [4]int64{p.GetGeneration(), int64(all), int64(updated), int64(ready)}, string(p.GetUID())
	if f.lastWrote[key] == now {
		return nil
	}
	done := all == p.pods && updated == p.pods && ready == p.pods
	if wait := time.Until(f.statusAt[key].Add(statusEvery)); wait > 0 && !done {
		time.AfterFunc(wait, f.look)
		return nil
	}
	err := p.write(ctx, all, updated, ready)
	if apierrors.IsConflict(err) {
		return nil // the cache is behind: there is another look when it is not
	}
	f.lastWrote[key], f.statusAt[key] = now, time.Now()
	return err
}

func serves(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && pod.DeletionTimestamp == nil {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
