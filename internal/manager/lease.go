package manager

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// This file makes the lease for which managers compete, and reports what happens to it to the term.

// The times of leader election, unless [Options] say otherwise: those of Kubernetes' own components.
const (
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// elect makes what managers compete for. Requests about it are not guarded: they renew the term.
func (o Options) elect() (*term, *observedLock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, err
	}
	cfg := rest.AddUserAgent(rest.CopyConfig(o.Config), "leader-election")
	// A single request that hangs must not cost the lease.
	cfg.Timeout = max(o.RenewDeadline/2, time.Second)
	client, err := coordinationv1client.NewForConfig(cfg)
	if err != nil {
		return nil, nil, err
	}
	t := newTerm(o.LeaderElectionNamespace, o.LeaderElectionID, host+"_"+string(uuid.NewUUID()), o.RenewDeadline, o.Logger)
	events := &lateRecorder{}
	return t, &observedLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: o.LeaderElectionNamespace, Name: o.LeaderElectionID},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: t.identity, EventRecorder: events},
		},
		term: t, events: events,
	}, nil
}

var _ resourcelock.Interface = (*observedLock)(nil)

// observedLock reports to a term what is read from the lease and written to it.
type observedLock struct {
	resourcelock.Interface

	term   *term
	events *lateRecorder
}

// Get reads the lease. If another manager holds it, it ends the term before the caller gets the answer.
func (l *observedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.term.noted("get", err)
	if err == nil {
		l.term.saw(record.HolderIdentity)
	}
	return record, raw, err
}

// Create creates a lease that does not exist yet.
func (l *observedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "create", record, l.Interface.Create)
}

// Update takes the lease, renews it, or gives it up.
func (l *observedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "update", record, l.Interface.Update)
}

// write writes the lease, unless the term is over: that would take the lease from its new holder.
func (l *observedLock) write(
	ctx context.Context, verb string, record resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	select {
	case <-l.term.over:
		return l.term.may()
	default:
	}
	if record.HolderIdentity == "" {
		l.term.end("") // no write may follow the release
	}
	sent := l.term.now()
	err := write(ctx, record)
	l.term.noted(verb, err)
	if err == nil && record.HolderIdentity != "" {
		l.term.renew(sent)
	}
	return err
}

// lateRecorder records events as soon as there is a manager to record them with.
type lateRecorder struct {
	to atomic.Pointer[resourcelock.EventRecorder]
}

func (r *lateRecorder) use(mgr ctrl.Manager, identity string) {
	var to resourcelock.EventRecorder = mgr.GetEventRecorderFor(identity) //nolint:staticcheck // what leader election takes
	r.to.Store(&to)
}

// Eventf is resourcelock.EventRecorder's.
func (r *lateRecorder) Eventf(o runtime.Object, kind, reason, message string, args ...any) {
	if to := r.to.Load(); to != nil {
		(*to).Eventf(o, kind, reason, message, args...)
	}
}

// CheckTimes refuses times of leader election with which two managers could lead at once, or none for long.
func (o Options) CheckTimes() error {
	set := o.withDefaults()
	switch {
	case set.LeaseDuration%time.Second != 0:
		return fmt.Errorf("a lease is for whole seconds, not for %s", set.LeaseDuration)
	case set.LeaseDuration <= set.RenewDeadline:
		return fmt.Errorf("the lease, %s, has to be longer than what a leader waits for its renewal, %s", set.LeaseDuration, set.RenewDeadline)
	case set.RetryPeriod <= 0 || set.RenewDeadline <= set.RetryPeriod*6/5:
		return fmt.Errorf("a leader that waits %s for a renewal has to try more often than every %s", set.RenewDeadline, set.RetryPeriod)
	}
	return nil
}

// withDefaults fills in the times of leader election that are not set.
func (o Options) withDefaults() Options {
	if o.LeaderElectionNamespace == "" {
		o.LeaderElectionNamespace = PodNamespace()
	}
	o.LeaseDuration = cmp.Or(o.LeaseDuration, DefaultLeaseDuration)
	o.RenewDeadline = cmp.Or(o.RenewDeadline, DefaultRenewDeadline)
	o.RetryPeriod = cmp.Or(o.RetryPeriod, DefaultRetryPeriod)
	return o
}

// podNamespaceFile is where a pod's token is, with the namespace that it is for.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// PodNamespace returns the namespace of the pod that the process runs in: as the variable POD_NAMESPACE says, which is
// what manifests call it, or as its token does. It is empty outside of a pod.
func PodNamespace() string {
	if ns := strings.TrimSpace(os.Getenv("POD_NAMESPACE")); ns != "" {
		return ns
	}
	b, err := os.ReadFile(podNamespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
