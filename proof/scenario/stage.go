package scenario

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/fault"
)

// This file says what a place has to offer on which a script can be played.

// Stage is where a script is played: the simulation, or a real API server. One goroutine uses it. Every method returns
// when its effect is there; an error means that the play cannot go on, never that a controller did something wrong.
type Stage interface {
	World
	Managers
	Recording

	// Name is by what a script may leave the stage out: "simulation" or "sandbox".
	Name() string
	// Client is the user's: no fault touches it. A client.List says the resource version as of which it answers.
	Client() client.Client
	// Namespace is the play's own.
	Namespace() string
}

// World is the part of a stage where there are machines, and where time goes by.
type World interface {
	// Nodes makes exactly n nodes exist, node-0 to node-(n-1), and takes the others away as a machine vanishes, with their
	// pods.
	Nodes(ctx context.Context, n int) error
	// Pod lets the kubelet bring a pod of the namespace into a state, and returns when that is in its status.
	Pod(ctx context.Context, name string, state PodState) error
	// Until waits until f returns nil. When that does not happen within reason, or ctx ends, the error says what was
	// waited for and wraps the last error of f. The simulation lets the world go on between two looks.
	Until(ctx context.Context, what string, f func(context.Context) error) error
	// Settle waits until the controllers and the cluster have nothing left to do: rollouts have ended, or wait for what
	// will not come. It does not wait for managers that do not run, for watches that are held, or for pods that are stuck.
	Settle(ctx context.Context) error
}

// Managers are the part of a stage that runs controllers, and lets their requests fail.
type Managers interface {
	// StartManager starts manager n, from 1, with empty caches. It runs the controllers of the script. A manager that a
	// fault kills is started again by the stage; one that KillManager ended is not. It does nothing if the manager runs.
	StartManager(ctx context.Context, n int) error
	// KillManager ends manager n as SIGKILL does. It does nothing if the manager does not run.
	KillManager(ctx context.Context, n int) error
	// Fault makes something fail from now on. What it asks for has not failed yet when it returns.
	Fault(ctx context.Context, f FaultSpec) error
}

// Recording is the part of a stage that knows what happened.
type Recording interface {
	// Sync returns a resource version up to which History will be complete: that of now, or a later one.
	Sync(ctx context.Context) (uint64, error)
	// History is what happened up to the last Sync, with who did it.
	History() (*check.History, error)
}

// PodState is what the kubelet can bring a pod into.
type PodState string

// The states of a pod.
const (
	// Ready and Unready are about its readiness; it runs in both.
	Ready   PodState = "ready"
	Unready PodState = "unready"
	// Failed and Succeeded are the ends of a pod that is not deleted.
	Failed    PodState = "failed"
	Succeeded PodState = "succeeded"
	// Stuck means that it will stay terminating once it is deleted, until it is Gone.
	Stuck PodState = "stuck"
	// Gone is the end of a pod that is terminating: its object goes.
	Gone PodState = "gone"
)

// FaultSpec is one thing that fails, or an end of that.
type FaultSpec struct {
	Do FaultAction
	// Manager is the one that it happens to; 0 means all, those included that are not started yet.
	Manager int

	// Verb, Resource and Subresource say to which requests. Hold, Release, Cut and Rewind look at Resource only. Verb is
	// create, update, patch or delete; "*" stands for all of them.
	Verb        string
	Resource    schema.GroupResource
	Subresource string

	// Mode is how a request fails (Fail).
	Mode fault.Mode
	// Nth is which one of the requests that match from now on is the first to fail, from 1 (Fail and Refuse).
	Nth int
	// Times is how many fail from that one on. 0 means one for Fail, and all for Refuse.
	Times int
	// Status is the HTTP status of the answer (Refuse).
	Status int

	// ResourceVersion is as of when a list is answered (Rewind).
	ResourceVersion string
}

// FaultAction is what to do.
type FaultAction string

// What a FaultSpec can ask for.
const (
	// Fail makes single requests fail by Mode.
	Fail FaultAction = "fail"
	// Refuse answers requests with Status, without acting on them, until Allow.
	Refuse FaultAction = "refuse"
	// Allow ends every Refuse of the same manager, verb, resource and subresource.
	Allow FaultAction = "allow"
	// Hold keeps the watch events of a resource from the manager until Release, which gives all of them, in order.
	Hold    FaultAction = "hold"
	Release FaultAction = "release"
	// Cut ends the watches of a resource with 410, so that the manager lists again. Events that were held are lost.
	Cut FaultAction = "cut"
	// Rewind answers the manager's next list of a resource that is content with any version as of ResourceVersion.
	Rewind FaultAction = "rewind"
)
