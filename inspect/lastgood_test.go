package inspect

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/inspecttest"
	"github.com/cairn-dev/cairn/rollback"
)

// TestLastGood: the newest revision that the status names as good, or all of whose pods have been available for a
// while; otherwise nobody guesses.
func TestLastGood(t *testing.T) {
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	since := func(age time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-age)),
			}}
		}
	}
	unready := func(*corev1.Pod) {}
	terminating := func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: now}, []string{"example.com/slow"}
	}
	for name, c := range map[string]struct {
		good string // as the status says
		pods map[string][]func(*corev1.Pod)
		want string
	}{
		"nothing is known":      {want: ""},
		"the status says so":    {good: "web-aaa", want: "web-aaa"},
		"of the current one":    {good: "web-ccc", want: ""},
		"its pods serve":        {pods: map[string][]func(*corev1.Pod){"aaa": {since(time.Hour)}}, want: "web-aaa"},
		"the newest":            {good: "web-aaa", pods: map[string][]func(*corev1.Pod){"bbb": {since(time.Hour)}}, want: "web-bbb"},
		"not for long":          {good: "web-aaa", pods: map[string][]func(*corev1.Pod){"bbb": {since(10 * time.Second)}}, want: "web-aaa"},
		"one of them does not":  {pods: map[string][]func(*corev1.Pod){"bbb": {since(time.Hour), unready}}, want: ""},
		"one is being replaced": {pods: map[string][]func(*corev1.Pod){"bbb": {since(time.Hour), terminating}}, want: "web-bbb"},
		"all are going":         {pods: map[string][]func(*corev1.Pod){"bbb": {terminating}}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			ds := inspecttest.Web("web:3")
			third := inspecttest.StoredOf(t, ds, 3, "ccc")
			third.Annotations = map[string]string{history.CompletedRevisionsAnnotation: "web-bbb"} // a user may have written that
			if hash, ok := strings.CutPrefix(c.good, "web-"); ok {
				good := rollback.Good{Last: rollback.Revision{Name: c.good, UID: types.UID("uid-" + hash)}}.Condition(metav1.Time{})
				ds.Status.Conditions = []appsv1.DaemonSetCondition{{
					Type: appsv1.DaemonSetConditionType(good.Type), Status: corev1.ConditionTrue, Reason: good.Reason, Message: good.Message,
				}}
			}
			objects := []client.Object{
				ds, inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"), inspecttest.StoredOf(t, inspecttest.Web("web:2"), 2, "bbb"), third,
			}
			for hash, states := range c.pods {
				for n, state := range states {
					pod := inspecttest.Pod(ds, hash+strings.Repeat("x", n), hash)
					state(pod)
					objects = append(objects, pod)
				}
			}
			u, err := New(inspecttest.Server(interceptor.Funcs{}, objects...)).PlanUndoLastGood(t.Context(), ds, now)
			if c.want == "" {
				if _, never := errors.AsType[*NeverCompleteError](err); !never {
					t.Errorf("got %v, %v", u, err)
				}
				return
			}
			if err != nil || u.To.Name != c.want {
				t.Errorf("got %v, %v", u, err)
			}
		})
	}
}
