package cronjob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"pgregory.net/rapid"
)

func scheduleOf(t *testing.T, text, zone string) schedule {
	t.Helper()
	spec := &batchv1.CronJobSpec{Schedule: text}
	if zone != "" {
		spec.TimeZone = &zone
	}
	out, wrong := parse(spec)
	if wrong != nil {
		t.Fatal(wrong.message)
	}
	return out
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhenAJobIsDue(t *testing.T) {
	for name, c := range map[string]struct{ schedule, zone, after, now, want string }{
		"not yet":                    {"0 * * * *", "", "2026-01-01T10:00:00Z", "2026-01-01T10:59:59Z", ""},
		"on the second":              {"0 * * * *", "", "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z", "2026-01-01T11:00:00Z"},
		"only the latest of many":    {"*/5 * * * *", "", "2026-01-01T10:00:00Z", "2026-01-01T12:03:00Z", "2026-01-01T12:00:00Z"},
		"in office hours":            {"30 6-16/4 * * 1-5", "", "2026-01-02T06:30:00Z", "2026-01-04T12:00:00Z", "2026-01-02T14:30:00Z"},
		"years ago":                  {"0 0 29 2 *", "", "2023-01-01T00:00:00Z", "2026-06-01T00:00:00Z", "2024-02-29T00:00:00Z"},
		"in a time zone":             {"0 9 * * *", "America/New_York", "2026-01-01T00:00:00Z", "2026-01-01T20:00:00Z", "2026-01-01T14:00:00Z"},
		"an hour that does not come": {"30 2 * * *", "Europe/Berlin", "2026-03-28T01:30:00Z", "2026-03-29T12:00:00Z", ""},
		"@hourly":                    {"@hourly", "", "2026-01-01T10:30:00Z", "2026-01-01T12:30:00Z", "2026-01-01T12:00:00Z"},
		"every ninety minutes":       {"@every 90m", "", "2026-01-01T10:10:10Z", "2026-01-01T14:00:00Z", "2026-01-01T13:10:10Z"},
		"every one, not yet":         {"@every 90m", "", "2026-01-01T10:10:10Z", "2026-01-01T11:40:09Z", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := scheduleOf(t, c.schedule, c.zone).latest(at(t, c.after), at(t, c.now))
			text := ""
			if !got.IsZero() {
				text = got.UTC().Format(time.RFC3339)
			}
			if text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// TestTheLatestTimeIsThatOfAWalk compares the search with a walk over all times, in zones whose clocks are changed.
func TestTheLatestTimeIsThatOfAWalk(t *testing.T) {
	texts := []string{
		"* * * * *", "*/7 * * * *", "0 * * * *", "30 1 * * *", "30 2 * * *", "0 0-11 * * *", "15 3 * * 0", "0 0 1 * *", "30 6-16/4 * * 1-5",
		"@every 1m", "@every 90s", "@every 7h", "@daily",
	}
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"}
	rapid.Check(t, func(rt *rapid.T) {
		s := scheduleOf(t, rapid.SampledFrom(texts).Draw(rt, "schedule"), rapid.SampledFrom(zones).Draw(rt, "zone"))
		after := time.Unix(rapid.Int64Range(1_790_000_000, 1_800_000_000).Draw(rt, "after"), 0)
		now := after.Add(time.Duration(rapid.Int64Range(0, 3*24*3600).Draw(rt, "seconds")) * time.Second)
		from := after.Add(time.Duration(rapid.Int64Range(0, 24*3600).Draw(rt, "from")) * time.Second)
		var latest time.Time
		n, later := 0, 0
		for at := s.Next(after); !at.After(now); at = s.Next(at) {
			latest = at
			n++
			if !at.Before(from) {
				later++
			}
		}
		if got := s.latest(after, now); !got.Equal(latest) {
			rt.Fatalf("after %s, at %s: got %s, want %s", after.UTC(), now.UTC(), got.UTC(), latest.UTC())
		}
		if got := s.count(after, from, now, 101); got != min(later, 101) {
			rt.Fatalf("after %s, from %s, at %s: got %d, want %d", after.UTC(), from.UTC(), now.UTC(), got, later)
		}
		next := latest
		if n == 0 {
			next = after
		}
		if got := s.next(after, now); !got.Equal(s.Next(next)) || !got.After(now) {
			rt.Fatalf("after %s, at %s: the next one is %s", after.UTC(), now.UTC(), got.UTC())
		}
	})
}

// TestDecadesCostLittle: a clock that was wrong must not cost a walk over all the times since (kubernetes.io, "CronJob
// limitations").
func TestDecadesCostLittle(t *testing.T) {
	s := scheduleOf(t, "* * * * *", "")
	now := at(t, "2026-01-01T00:00:30Z")
	n := testing.AllocsPerRun(10, func() {
		if got := s.latest(now.AddDate(-50, 0, 0), now); !got.Equal(at(t, "2026-01-01T00:00:00Z")) {
			t.Fatal(got)
		}
	})
	if n > 1000 {
		t.Errorf("%v allocations", n)
	}
	if got := s.count(now.AddDate(-50, 0, 0), now.AddDate(-50, 0, 0), now, many+1); got != many+1 {
		t.Errorf("counted %d", got)
	}
}

func TestSchedulesThatCannotBe(t *testing.T) {
	zone := "Nowhere/Land"
	for name, c := range map[string]struct {
		spec batchv1.CronJobSpec
		want string
	}{
		"zone":              {batchv1.CronJobSpec{Schedule: "* * * * *", TimeZone: &zone}, `UnknownTimeZone: invalid timeZone: "Nowhere/Land"`},
		"text":              {batchv1.CronJobSpec{Schedule: "every day"}, `UnparseableSchedule: unparseable schedule: "every day"`},
		"the parser panics": {batchv1.CronJobSpec{Schedule: "TZ=0"}, "UnparseableSchedule"},
	} {
		t.Run(name, func(t *testing.T) {
			_, wrong := parse(&c.spec)
			if wrong == nil || !strings.Contains(fmt.Sprintf("%s: %s", wrong.reason, wrong.message), c.want) {
				t.Errorf("got %v", wrong)
			}
		})
	}
	if s := scheduleOf(t, "59 23 31 2 *", ""); !s.never(at(t, "2026-01-01T00:00:00Z")) {
		t.Error("there is no 31st of February")
	}
}

// TestDaylightSaving: a time that a day does not have is skipped, and a time that it has twice is served twice.
func TestDaylightSaving(t *testing.T) {
	s := scheduleOf(t, "30 2 * * *", "Europe/Berlin")
	for from, want := range map[string][]string{
		"2026-03-28T12:00:00Z": {"2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"},
		"2026-10-24T12:00:00Z": {"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"},
	} {
		at, err := time.Parse(time.RFC3339, from)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range want {
			at = s.Next(at)
			if got := at.UTC().Format(time.RFC3339); got != want {
				t.Errorf("after %s: got %s, want %s", from, got, want)
			}
		}
	}
}
