package host

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// TestEventsHaveTheirOldFields: the source, the times and a count that rises, beside what the newer API has.
func TestEventsHaveTheirOldFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		r := newRecording(client.CoreV1(), logr.Discard())
		recorder := r.recorder(clientgoscheme.Scheme)
		if err := r.start(); err != nil {
			t.Fatal(err)
		}
		about := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-of-a"}}
		begun := time.Now()
		said := func() *corev1.Event {
			t.Helper()
			recorder.Eventf(about, nil, corev1.EventTypeWarning, "SyncError", "Sync", "it is %s", "broken")
			synctest.Wait()
			list, err := client.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 {
				t.Fatal(list, err)
			}
			return &list.Items[0]
		}
		e := said()
		first := fmt.Sprintln(e.Source.Component, e.ReportingController, e.Type, e.Reason, e.Action, e.Message, e.InvolvedObject.Name, e.Count)
		if first != "metacontroller metacontroller Warning SyncError Sync it is broken a 1\n" || e.ReportingInstance == "" {
			t.Error(first)
		}
		if !e.FirstTimestamp.Time.Equal(begun) || !e.LastTimestamp.Time.Equal(begun) || !e.EventTime.Time.Equal(begun) {
			t.Error(e.FirstTimestamp, e.LastTimestamp, e.EventTime)
		}
		later := func(d time.Duration) {
			time.Sleep(d) //nolint:forbidigo // time is that of the bubble
			synctest.Wait()
		}
		later(time.Minute)
		e = said()
		if e.Count != 2 || e.Series == nil || e.Series.Count != 2 || e.LastTimestamp.Sub(begun) != time.Minute || !e.FirstTimestamp.Time.Equal(begun) {
			t.Error(e.Count, e.Series, e.FirstTimestamp, e.LastTimestamp)
		}
		for range 5 {
			later(time.Minute)
			said()
		}
		later(30 * time.Minute) // when client-go writes what was repeated meanwhile
		list, err := client.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil || list.Items[0].Count != 7 || list.Items[0].LastTimestamp.Sub(begun) != 6*time.Minute {
			t.Error(list.Items, err)
		}
		r.stop()
		recorder.Eventf(about, nil, corev1.EventTypeNormal, "Late", "Sync", "nobody listens")
		synctest.Wait()
	})
}
