package statefulset

// The rolling update, one plan at a time: whose turn it is, and which pods are replaced out of turn because they serve
// nobody. The update revision is b, the current one a.

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// startsSays is what a pod waits for that is starting.
const startsSays = "it is starting, and is replaced once it is ready or fails; delete it, or set the annotation cairn.dev/replace-never-ready to \"true\", to go on at once"

func waits(reason string) podOption {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{waitingFor(reason)} }
}

func gated(by string) podOption {
	return func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: by}} }
}

func TestPlanRollout(t *testing.T) {
	four := replicas(4)
	for name, c := range map[string]struct {
		set  []setOption
		pods []*corev1.Pod
		want []string
		says string // what the rollout says first, if it matters
	}{
		"the highest goes first": {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a")}, []string{"delete web-2"}, "it comes from revision web-a (unavailable 1 of 1)"},
		"the next one":           {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b")}, []string{"delete web-1"}, ""},
		"it is being made":       {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a")}, []string{"create web-2 b"}, "scaling comes first: web-2 does not exist"},
		"it starts":              {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b", stuck)}, nil, "scaling comes first: web-2 is not ready"},
		"it starts, Parallel":    {[]setOption{parallel}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b", stuck)}, nil, "1 of 3 may be unavailable, and 1 are"},
		"it goes, Parallel":      {[]setOption{parallel}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a", terminating)}, nil, ""},
		"done":                   {nil, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b")}, nil, ""},
		"scaling comes first":    {[]setOption{replicas(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a")}, []string{"delete web-2"}, "scaling comes first: waiting for web-2 to be deleted"},
		"scaling, Parallel":      {[]setOption{replicas(2), parallel}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a")}, []string{"delete web-1", "delete web-2"}, ""},

		"two at once":                      {[]setOption{four, atOnce(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a"), pod(3, "a")}, []string{"delete web-2", "delete web-3"}, ""},
		"two at once, one is down":         {[]setOption{four, atOnce(2), parallel}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a"), pod(3, "b", stuck)}, []string{"delete web-2"}, ""},
		"two at once, one below (38)":      {[]setOption{four, atOnce(2), parallel}, []*corev1.Pod{pod(0, "b", stuck), pod(1, "a"), pod(2, "a"), pod(3, "a")}, []string{"delete web-3"}, ""},
		"half of four":                     {[]setOption{four, atOnce("50%")}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a"), pod(3, "a")}, []string{"delete web-2", "delete web-3"}, ""},
		"a tenth of four is one":           {[]setOption{four, atOnce("10%")}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a"), pod(3, "a")}, []string{"delete web-3"}, ""},
		"two at once, in order":            {[]setOption{four, atOnce(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a"), pod(3, "b")}, []string{"delete web-1", "delete web-2"}, ""},
		"the partition holds":              {[]setOption{partition(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b")}, nil, ""},
		"the partition holds, lost":        {[]setOption{partition(2)}, []*corev1.Pod{pod(0, "a"), pod(2, "b")}, []string{"create web-1 a"}, ""},
		"the partition is raised (44)":     {[]setOption{partition(3)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b")}, nil, ""},
		"lost below the partition, raised": {[]setOption{partition(3)}, []*corev1.Pod{pod(0, "a"), pod(1, "a")}, []string{"create web-2 a"}, ""},
		"partition from the start":         {[]setOption{startAt(5), partition(2)}, []*corev1.Pod{pod(5, "a"), pod(6, "a"), pod(7, "a")}, []string{"delete web-7"}, ""},
		"by hand only":                     {[]setOption{onDelete}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a")}, nil, ""},
		"by hand only, however broken":     {[]setOption{onDelete}, []*corev1.Pod{pod(0, "a", stuck), pod(1, "a", unready), pod(2, "a")}, nil, ""},

		// 36: under OrderedReady a pod that was never ready blocks nothing if it would not be made like that again.
		"36: the first template is broken":        {nil, []*corev1.Pod{pod(0, "a", crashing)}, []string{"delete web-0"}, "it comes from revision web-a and is not available anyway, and never was"},
		"36: it is broken on the second ordinal":  {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a", crashing)}, []string{"delete web-1"}, ""},
		"36: it waits for a node":                 {nil, []*corev1.Pod{pod(0, "a", unschedulable)}, []string{"delete web-0"}, ""},
		"36: it holds up what has not begun":      {nil, []*corev1.Pod{pod(0, "a", crashing), pod(1, "a"), pod(2, "a")}, []string{"delete web-0"}, ""},
		"36: another edit":                        {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "z", crashing)}, []string{"delete web-2"}, ""},
		"36: in the middle of another edit":       {nil, []*corev1.Pod{pod(0, "a"), pod(1, "z", crashing), pod(2, "b")}, []string{"delete web-1"}, ""},
		"36: an old edit, not reached":            {[]setOption{four}, []*corev1.Pod{pod(0, "a"), pod(1, "z", crashing), pod(2, "a"), pod(3, "b")}, []string{"delete web-1"}, ""},
		"36: below the partition":                 {[]setOption{partition(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "z", crashing), pod(2, "b")}, []string{"delete web-1"}, ""},
		"36: below the partition, as it is to be": {[]setOption{partition(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "a", crashing), pod(2, "b")}, nil, ""},
		"36: it conforms, so it stays":            {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b", crashing)}, nil, ""},
		"36: one that was lost comes back":        {[]setOption{four}, []*corev1.Pod{pod(0, "a", crashing), pod(1, "a"), pod(2, "a"), pod(3, "b")}, []string{"delete web-0"}, "scaling comes first: web-0 is not ready"},
		"36: a lost one fits no node":             {nil, []*corev1.Pod{pod(0, "a", unschedulable), pod(1, "a"), pod(2, "b")}, []string{"delete web-0"}, "scaling comes first: web-0 cannot start from revision web-a"},
		"36: a lost one fits no node, Parallel":   {[]setOption{parallel}, []*corev1.Pod{pod(0, "a", unschedulable), pod(1, "a"), pod(2, "b")}, []string{"delete web-0"}, ""},
		"36: two lost ones fit no node":           {nil, []*corev1.Pod{pod(0, "a", unschedulable), pod(1, "a", unschedulable), pod(2, "b")}, []string{"delete web-0", "delete web-1"}, ""},
		"36: the image of a lost one is gone":     {nil, []*corev1.Pod{pod(0, "a", pending, waits("ImagePullBackOff")), pod(1, "a"), pod(2, "b")}, []string{"delete web-0"}, ""},
		"36: the update is not available":         {nil, []*corev1.Pod{pod(0, "a", unschedulable), pod(1, "a"), pod(2, "b", stuck)}, []string{"delete web-0"}, ""},
		"36: it gets a minute then": {
			nil,
			[]*corev1.Pod{pod(0, "a", unschedulable, young), pod(1, "a"), pod(2, "b", stuck)},
			nil,
			"scaling comes first: web-0 cannot start from revision web-a",
		},
		"36: and none if the update is available": {nil, []*corev1.Pod{pod(0, "a", unschedulable, young), pod(1, "a"), pod(2, "b")}, []string{"delete web-0"}, ""},
		"36: a lost one starts":                   {nil, []*corev1.Pod{pod(0, "a", stuck, young), pod(1, "a"), pod(2, "b")}, nil, "scaling comes first: web-0 is not ready"},
		"36: a lost one starts, and at length":    {nil, []*corev1.Pod{pod(0, "a", stuck), pod(1, "a"), pod(2, "b")}, []string{"delete web-0"}, ""},
		"36: a lost one starts, if so asked":      {[]setOption{neverReadies("true")}, []*corev1.Pod{pod(0, "a", stuck, young), pod(1, "a"), pod(2, "b")}, []string{"delete web-0"}, ""},
		"36: none works, a lost one fails":        {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a", crashing), pod(2, "b", stuck)}, []string{"delete web-1"}, ""},
		"36: none works, a lost one starts":       {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a", stuck, young), pod(2, "b", stuck)}, nil, "it has not become ready from revision web-a; if that lasts for 10m0s, revision web-b takes its place"},
		"36: none works, it starts for long":      {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a", stuck), pod(2, "b", stuck)}, []string{"delete web-1"}, ""},
		"36: a lost one is held":                  {[]setOption{partition(1)}, []*corev1.Pod{pod(0, "a", unschedulable), pod(1, "a"), pod(2, "b")}, nil, ""},
		"36: a lost one is kept by annotation":    {[]setOption{neverReadies("false")}, []*corev1.Pod{pod(0, "a", unschedulable), pod(1, "a"), pod(2, "b")}, nil, ""},
		"36: one that was ready waits":            {nil, []*corev1.Pod{pod(0, "a", unready), pod(1, "a"), pod(2, "a")}, nil, "scaling comes first: web-0 is not ready"},
		"36: one that was ready, at its turn":     {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a", unready)}, []string{"delete web-2"}, ""},
		"36: it could not be created again":       {[]setOption{replicas(3)}, []*corev1.Pod{pod(0, "a", unready), pod(1, "a"), pod(2, "a", unschedulable)}, nil, "scaling comes first: web-0 is not ready"},
		"36: nor one below the partition":         {[]setOption{partition(2)}, []*corev1.Pod{pod(0, "a", unready), pod(1, "z", crashing), pod(2, "b")}, nil, ""},
		"36: all were ready":                      {nil, []*corev1.Pod{pod(0, "a", unready), pod(1, "a", unready), pod(2, "a", unready)}, []string{"delete web-2"}, ""},
		"36: the upper ones were ready":           {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a", unready), pod(2, "a", unready)}, []string{"delete web-2"}, ""},
		"36: one above one that serves":           {nil, []*corev1.Pod{pod(0, "a", unready), pod(1, "a"), pod(2, "a", unready)}, nil, "scaling comes first: web-0 is not ready"},
		"36: switched off":                        {[]setOption{keepsNeverReady}, []*corev1.Pod{pod(0, "a", crashing)}, nil, "it is not available, and the annotation cairn.dev/replace-never-ready keeps it; delete it to go on"},
		"36: switched off, below the partition":   {[]setOption{keepsNeverReady, partition(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "z", crashing), pod(2, "b")}, nil, ""},

		// 37: without an order, what is down anyway uses up no budget.
		"37: all are broken":                     {[]setOption{parallel}, []*corev1.Pod{pod(0, "a", crashing), pod(1, "a", crashing), pod(2, "a", crashing)}, []string{"delete web-0", "delete web-1", "delete web-2"}, ""},
		"37: all crashed":                        {[]setOption{parallel}, []*corev1.Pod{pod(0, "a", unready), pod(1, "a", unready), pod(2, "a", unready)}, []string{"delete web-0", "delete web-1", "delete web-2"}, ""},
		"37: one crashed, the others serve":      {[]setOption{parallel}, []*corev1.Pod{pod(0, "a", unready), pod(1, "a"), pod(2, "a")}, []string{"delete web-0"}, ""},
		"37: one crashed, and the rollout waits": {[]setOption{parallel, four}, []*corev1.Pod{pod(0, "a", unready), pod(1, "a"), pod(2, "a"), pod(3, "b", crashing)}, nil, "1 of 4 may be unavailable, and 2 are"},
		"37: it crashed at its turn":             {[]setOption{parallel}, []*corev1.Pod{pod(0, "a"), pod(1, "a", unready), pod(2, "b")}, []string{"delete web-1"}, ""},
		"37: the annotation is about order only": {[]setOption{parallel, keepsNeverReady}, []*corev1.Pod{pod(0, "a", crashing), pod(1, "a", crashing), pod(2, "a", crashing)}, []string{"delete web-0", "delete web-1", "delete web-2"}, ""},
		"37: one is missing above":               {[]setOption{parallel, four, atOnce(3)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a", unready)}, []string{"create web-3 b", "delete web-1", "delete web-2"}, ""},
		"37: the mended one is down as well":     {[]setOption{parallel}, []*corev1.Pod{pod(0, "a", crashing), pod(1, "a", crashing), pod(2, "b", crashing)}, []string{"delete web-0", "delete web-1"}, ""},
		"37: one that worked is down as well":    {[]setOption{parallel, four}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a", unready), pod(3, "b", unready)}, []string{"delete web-2"}, ""},
		"37: none serves":                        {[]setOption{parallel, replicas(2)}, []*corev1.Pod{pod(0, "a", unready), pod(1, "b", stuck)}, []string{"delete web-0"}, ""},
		"37: a lost node, none serves":           {[]setOption{parallel, replicas(2)}, []*corev1.Pod{pod(0, "a", unready), pod(1, "a", unready, terminating)}, []string{"delete web-0"}, ""},
		"37: a lost node, and budget left":       {[]setOption{parallel, replicas(5), atOnce(3)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a"), pod(3, "a", unready), pod(4, "a", terminating)}, []string{"delete web-2", "delete web-3"}, ""},
		"37: those that start are down too":      {[]setOption{parallel}, []*corev1.Pod{pod(0, "a", stuck), pod(1, "a", crashing), pod(2, "a", stuck)}, []string{"delete web-0", "delete web-1", "delete web-2"}, ""},
		"37: they start, below one that serves":  {[]setOption{parallel}, []*corev1.Pod{pod(0, "a", stuck), pod(1, "a", stuck), pod(2, "a")}, []string{"delete web-1"}, ""},
		"37: they go down in mid-rollout":        {[]setOption{parallel, four}, []*corev1.Pod{pod(0, "a", unready), pod(1, "a", stuck), pod(2, "a"), pod(3, "b")}, []string{"delete web-1"}, ""},
		"37: the next one, once that serves":     {[]setOption{parallel, four}, []*corev1.Pod{pod(0, "a", unready), pod(1, "b"), pod(2, "a"), pod(3, "b")}, []string{"delete web-0"}, ""},
		"37: the next one waits until it does":   {[]setOption{parallel}, []*corev1.Pod{pod(0, "a", unready), pod(1, "b", stuck, young), pod(2, "a")}, nil, ""},
		"37: it waits for one minute":            {[]setOption{parallel}, []*corev1.Pod{pod(0, "a", unready), pod(1, "b", stuck), pod(2, "a")}, []string{"delete web-0"}, ""},
		"37: not while another one does":         {[]setOption{parallel, four}, []*corev1.Pod{pod(0, "a", unready), pod(1, "b", stuck), pod(2, "a"), pod(3, "b")}, []string{"delete web-0"}, ""},
		"37: within the budget, the top first":   {[]setOption{parallel, four, atOnce(3)}, []*corev1.Pod{pod(0, "a", stuck), pod(1, "a"), pod(2, "a"), pod(3, "b")}, []string{"delete web-1", "delete web-2"}, ""},

		// What only starts is not interrupted by an edit, unless somebody asks for that.
		"it starts, at an edit":      {nil, []*corev1.Pod{pod(0, "a", stuck)}, nil, startsSays},
		"it is being pulled":         {nil, []*corev1.Pod{pod(0, "a", pending, waits("ContainerCreating"))}, nil, startsSays},
		"it waits for the scheduler": {nil, []*corev1.Pod{pod(0, "a", pending)}, nil, startsSays},
		"it is gated": {
			nil,
			[]*corev1.Pod{pod(0, "a", pending, gated("acme.dev/quota"))},
			nil,
			strings.Replace(startsSays, "it is starting", "its scheduling gate acme.dev/quota keeps it from starting", 1),
		},
		"it starts in mid-rollout":          {nil, []*corev1.Pod{pod(0, "a"), pod(1, "z", stuck), pod(2, "b")}, nil, ""},
		"it starts below the partition":     {[]setOption{partition(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "z", stuck), pod(2, "b")}, nil, ""},
		"it starts, at another edit":        {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "z", stuck)}, nil, startsSays},
		"it starts, replaced if so asked":   {[]setOption{neverReadies("true")}, []*corev1.Pod{pod(0, "a", stuck)}, []string{"delete web-0"}, ""},
		"it starts, below, if so asked":     {[]setOption{partition(2), neverReadies("always")}, []*corev1.Pod{pod(0, "a"), pod(1, "z", stuck), pod(2, "b")}, []string{"delete web-1"}, ""},
		"it starts, and nonsense is asked":  {[]setOption{neverReadies("perhaps")}, []*corev1.Pod{pod(0, "a", stuck)}, nil, ""},
		"its image is not there":            {nil, []*corev1.Pod{pod(0, "a", pending, waits("ErrImagePull"))}, []string{"delete web-0"}, ""},
		"its image is not there, and again": {nil, []*corev1.Pod{pod(0, "a", pending, waits("ImagePullBackOff"))}, []string{"delete web-0"}, ""},

		"an adopted pod without its storage stays": {[]setOption{replicas(1), data(retain, retain), younger}, []*corev1.Pod{pod(0, "b")}, nil, ""},
		"one of ours without it stays":             {[]setOption{replicas(1), data(retain, retain)}, []*corev1.Pod{pod(0, "b")}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := given(web(c.set...), c.pods...)
			for _, p := range c.pods {
				for _, claim := range claimNames(f.set, 0) {
					f.claims[strings.Replace(claim, "-0", p.Name[len("web"):], 1)] = &corev1.PersistentVolumeClaim{}
				}
			}
			p := mustPlan(t, f)
			wantSteps(t, p, c.want...)
			var first string
			switch {
			case len(p.rollout.Steps) > 0:
				first = p.rollout.Steps[0].Reason
			case len(p.rollout.Waiting) > 0:
				first = p.rollout.Waiting[0].Reason
			}
			if c.says != "" {
				if diff := cmp.Diff(c.says, first); diff != "" {
					t.Errorf("says (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestARolloutBehindATakenName: what waits for a pod that cannot be created says why that is so.
func TestARolloutBehindATakenName(t *testing.T) {
	f := given(web(), pod(0, "a"), pod(2, "a"))
	f.conflicting = map[string]*corev1.Pod{"web-1": pod(1, "a", func(p *corev1.Pod) { p.OwnerReferences = nil })}
	p := mustPlan(t, f)
	const want = "scaling comes first: web-1 does not exist: another pod has the name, and belongs to no controller; it is left alone"
	if len(p.rollout.Waiting) == 0 || p.rollout.Waiting[0].Reason != want {
		t.Errorf("%+v", p.rollout.Waiting)
	}
}

func TestPlanOfABadStrategy(t *testing.T) {
	if _, err := makePlan(given(web(atOnce("many")))); err == nil || !strings.Contains(err.Error(), "rollingUpdate.maxUnavailable") {
		t.Errorf("%v", err)
	}
}

// TestGoingBack: the way back of a rollout that broke ends at the revision that served all the time.
func TestGoingBack(t *testing.T) {
	f := given(web(), pod(0, "a"), pod(1, "a"), pod(2, "b", crashing))
	f.update = f.current
	wantSteps(t, mustPlan(t, f), "delete web-2")
	f.pods = f.pods[:2]
	wantSteps(t, mustPlan(t, f), "create web-2 a")
	// Raising the partition as well keeps nobody at a template that never worked.
	f = given(web(partition(3)), pod(0, "a"), pod(1, "a"), pod(2, "b", crashing))
	f.update = f.current
	wantSteps(t, mustPlan(t, f), "delete web-2")
}

// TestHeldAndLost: a pod below the partition whose revision is gone stays what it is, also if it was never ready:
// nobody knows any more what it was made from. With its revision it is replaced by one of the current revision.
func TestHeldAndLost(t *testing.T) {
	for _, lost := range []bool{false, true} {
		set := web(partition(1))
		f := given(set, pod(0, "z", crashing), pod(1, "b"), pod(2, "b"))
		f.lost = map[string]bool{"web-z": lost}
		if p := mustPlan(t, f); (len(p.Deletes) == 0) != lost {
			t.Errorf("lost: %v, %d deletes", lost, len(p.Deletes))
		}
	}
}
