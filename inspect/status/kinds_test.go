package status

import (
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestKindsThatPeopleRun: the objects of popular operators are done, in progress or failed by their statuses, and in an
// unknown state without one.
func TestKindsThatPeopleRun(t *testing.T) {
	data, err := os.ReadFile("testdata/kinds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Kind                         string
		Spec, Done, Progress, Failed map[string]any
	}
	if err := yaml.UnmarshalStrict(data, &rows); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, row := range rows {
		kinds[row.Kind] = true
		group, kind, _ := strings.Cut(row.Kind, "/")
		for want, status := range map[State]map[string]any{Done: row.Done, InProgress: row.Progress, Failed: row.Failed, Unknown: {}} {
			if status == nil {
				continue
			}
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"generation": int64(1)}, "status": status,
			}}
			if row.Spec != nil {
				o.Object["spec"] = row.Spec
			}
			fix(o.Object)
			conditions(t, status)
			if got := reportedBy(o); got.state != want && (want != Unknown || got.state != InProgress) {
				t.Errorf("%s: %s: %s; want %s", row.Kind, got.state, got.reason, want)
			}
		}
	}
	if len(kinds) < 80 {
		t.Errorf("%d kinds", len(kinds))
	}
}

// conditions makes conditions of Ready=True:Reason in a status and its parts.
func conditions(t *testing.T, value any) {
	t.Helper()
	if list, ok := value.([]any); ok {
		for _, part := range list {
			conditions(t, part)
		}
	}
	fields, _ := value.(map[string]any)
	for _, part := range fields {
		conditions(t, part)
	}
	list, _ := fields["conditions"].([]any)
	for n := range list {
		text, ok := list[n].(string)
		if !ok {
			continue
		}
		kind, value, found := strings.Cut(text, "=")
		if !found {
			t.Fatal(text)
		}
		value, reason, _ := strings.Cut(value, ":")
		list[n] = map[string]any{"type": kind, "status": value, "reason": reason}
	}
}

// TestReportedStatuses: statuses of many kinds, as their controllers report them.
func TestReportedStatuses(t *testing.T) {
	data, err := os.ReadFile("testdata/statuses.txt")
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]State{"done": Done, "progress": InProgress, "failed": Failed, "unknown": Unknown}
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		want, known := states[fields[0]]
		if !known {
			continue // a comment
		}
		o := &unstructured.Unstructured{Object: map[string]any{}}
		if err := yaml.Unmarshal([]byte(fields[2]), &o.Object); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		group, kind, _ := strings.Cut(fields[1], "/")
		o.SetAPIVersion(group + "/v1")
		o.SetKind(kind)
		o.SetGeneration(1)
		fix(o.Object)
		conditions(t, o.Object["status"])
		if got := reportedBy(o); got.state != want {
			t.Errorf("%s: %s: %s", got.state, got.reason, line)
		}
	}
}

// TestOddStatuses: statuses that looked done to an earlier version, because a word or a field was not read.
func TestOddStatuses(t *testing.T) {
	for text, want := range map[string]State{
		`{conditions: ["Available=True", "Progressing=True:RollingOut", "Degraded=False"]}`:                                     InProgress,
		`{conditions: ["Synced=True", "Ready=True", "LastAsyncOperation=False:ApplyFailure"]}`:                                  Failed,
		`{phase: Cluster in healthy state, conditions: ["Ready=True", "ContinuousArchiving=False:ContinuousArchivingFailing"]}`: Failed,
		`{conditions: ["Available=True", "Remediating=True"]}`:                                                                  InProgress,
		`{health: {status: Healthy}, sync: {status: Synced}, conditions: ["ComparisonError="]}`:                                 Failed,
		`{health: {status: Healthy}, sync: {status: Synced}, conditions: ["OrphanedResources="]}`:                               Done,
		`{phase: PartiallyAvailable}`:                                                 InProgress,
		`{phase: NotAllReplicasReady}`:                                                InProgress,
		`{phase: Never ready}`:                                                        InProgress,
		`{phase: CannotReachReady}`:                                                   InProgress,
		`{stackStatus: UPDATE_ROLLBACK_COMPLETE}`:                                     Failed,
		`{state: attached, robustness: degraded}`:                                     Failed,
		`{conditions: ["Ready=True", "DiskPressure=True"]}`:                           Failed,
		`{conditions: ["Ready=True", "DiskPressure=False:KubeletHasNoDiskPressure"]}`: Done,
		`{conditions: ["Accepted=True:ListenersNotValid", "Programmed=True"]}`:        InProgress,
		`{conditions: ["Ready=True:NoErrors", "RollingOut=False:NotRollingOut"]}`:     Done,
		`{conditions: ["Ready=True", "NoErrors=False"]}`:                              Failed,
		`{conditions: ["Ready=True", "NotPaused=False"]}`:                             InProgress,
		`{conditions: ["Ready=True", "Ready=False:DatabaseMissing"]}`:                 InProgress,
		`{conditions: ["Initialized=True", "Sealed=True"]}`:                           InProgress,
		`{conditions: ["Updated=True", "Failed=True"]}`:                               Failed,
		`{parents: [{conditions: ["Accepted=True", "ResolvedRefs=True"]}]}`:           Done,
		`{parents: [{conditions: ["Accepted=True"]}, {conditions: ["Accepted=True", "ResolvedRefs=False:BackendNotFound"]}]}`: InProgress,
		`{ancestors: [{conditions: ["Accepted=False:Conflicted"]}]}`:                                                          InProgress,
		`{conditions: ["Programmed=True"], listeners: [{conditions: ["Programmed=False:Invalid"]}]}`:                          InProgress,
		`{conditions: ["Evicted=True", "Requeued=True"]}`:                                                                     InProgress,
		`{conditions: ["ProxyAvailable=True"], instances: [{name: a, replicas: 3, readyReplicas: 1}]}`:                        InProgress,
		`{jobManagerDeploymentStatus: READY, lifecycleState: ROLLED_BACK}`:                                                    Failed,
		`{status: ONLINE_PARTIAL}`:                     InProgress,
		`{status: NO_QUORUM}`:                          InProgress,
		`{phase: InstallReady}`:                        InProgress,
		`{conditions: ["ready=False", "synced=True"]}`: InProgress,
		`{parents: []}`:                                Unknown,
	} {
		status := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &status); err != nil {
			t.Fatal(err)
		}
		conditions(t, status)
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "a.example/v1", "kind": "Widget", "status": status}}
		fix(o.Object)
		if got := reportedBy(o); got.state != want {
			t.Errorf("%s: %s: %s; want %s", text, got.state, got.reason, want)
		}
	}
	stale := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": map[string]any{"generation": int64(2)},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Accepted", "status": "True", "observedGeneration": int64(1)},
			map[string]any{"type": "Programmed", "status": "True", "observedGeneration": int64(1)},
		}},
	}}
	second := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": map[string]any{"generation": int64(2)},
		"status": map[string]any{"parents": []any{
			map[string]any{"conditions": []any{map[string]any{"type": "Accepted", "status": "True", "observedGeneration": int64(2)}}},
			map[string]any{"conditions": []any{map[string]any{"type": "Accepted", "status": "True", "observedGeneration": int64(1)}}},
		}},
	}}
	if got := reportedBy(second); got.state != InProgress {
		t.Errorf("a parent that has seen an older spec: %s: %s", got.state, got.reason)
	}
	run := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "a/v1", "kind": "KafkaRebalance", "status": map[string]any{"conditions": []any{
			map[string]any{"type": "ProposalReady", "status": "True"},
		}},
	}}
	if got := reportedBy(run); got.state != InProgress {
		t.Errorf("work of which a part is ready: %s: %s", got.state, got.reason)
	}
	if got := reportedBy(stale); got.state != InProgress {
		t.Errorf("conditions about an older spec: %s: %s", got.state, got.reason)
	}
}

// TestUpdatedOfOthers: a condition Updated of another controller does not mean that a rollout is over.
func TestUpdatedOfOthers(t *testing.T) {
	for text, want := range map[string]State{
		`["Updated=True", "Degraded=True"]`:              Failed,
		`["Updated=True", "Ready=False"]`:                InProgress,
		`["Updated=False", "Updating=True"]`:             InProgress,
		`["Updated=True", "Degraded=False"]`:             Done,
		`["Updated=False:RolloutWaiting"]`:               InProgress,
		`["Updated=False:RevisionLost", "Healthy=True"]`: Failed,
	} {
		status := map[string]any{}
		if err := yaml.Unmarshal([]byte("conditions: "+text), &status); err != nil {
			t.Fatal(err)
		}
		conditions(t, status)
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "status": status,
		}}
		if got, reason := Alone(o, time.Time{}); got != want {
			t.Errorf("%s: %s: %s; want %s", text, got, reason, want)
		}
	}
}
