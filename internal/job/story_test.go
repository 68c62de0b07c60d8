package job

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/api/naming"
)

var update = flag.Bool("update", false, "write the stories' decisions as they are now")

// TestStories tells whole lives. In testdata/*.txt a line at the margin happens, and below it, indented, stands what is
// decided. Kubelets do only what a story says; the controller does what it decides.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := replay(string(want))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				err = os.WriteFile(file, []byte(got), 0o644)
			} else if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the story goes differently (-want +got):\n%s", diff)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// replay lets everything happen that the story says, and writes the decisions below each line again.
func replay(story string) (string, error) {
	var out strings.Builder
	s := &player{out: &out}
	for n, line := range strings.Split(strings.TrimRight(story, "\n"), "\n") {
		if strings.HasPrefix(line, " ") {
			continue
		}
		out.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.happens(strings.Fields(line)); err != nil {
			return "", fmt.Errorf("line %d: %s: %w", n+1, line, err)
		}
	}
	return out.String(), nil
}

type player struct {
	*world
	out *strings.Builder
	// dies is the call at which the controller's next pass dies, 0 for none; lost whether only the reply is lost.
	dies int
	lost bool
	// asleep: the controller does not look at what happens now.
	asleep bool
}

func (s *player) happens(words []string) error {
	verb, args := words[0], words[1:]
	if s.asleep = verb == "unseen"; s.asleep {
		verb, args = words[1], words[2:]
	}
	switch verb {
	case "job":
		return s.begin(args)
	case "crash": // crash 2: the next pass dies before its second call; crash 2 after: after it
		s.dies, _ = strconv.Atoi(args[0])
		s.lost = len(args) > 1
		return nil
	case "behind": // behind 2: a new controller begins with a list of pods that is two changes old
		lag, _ := strconv.Atoi(args[0])
		s.behind = true
		s.crash()
		if d, finished := s.reconcile(chaos{lag: lag}); finished { // not if its status was too old to be written
			s.print(d)
		}
	case "edit":
		var err error
		s.edit(func(j *Job) {
			for _, word := range args {
				err = cmpOr(err, set(j, word))
			}
		})
		if err != nil {
			return err
		}
	case "after":
		return s.after(args[0])
	case "quota":
		s.quota, _ = strconv.Atoi(args[0])
	case "invalid":
		s.invalid = strings.Join(args, " ")
	case "foreign":
		s.createForeign(args[0], args[1])
	case "leaves":
		delete(s.children, service(args[0]).name())
		delete(s.pods, args[0])
		s.changed()
	case "node":
		s.nodeLost(args[0])
	case "cordon":
		s.leaving[args[0]] = true
	default:
		if err := s.toPods(verb, args); err != nil {
			return err
		}
	}
	return s.rest()
}

func cmpOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (s *player) begin(args []string) error {
	j := demo(2)
	if args[0] == "TFJob" {
		tensorflow(&j)
	}
	if args[0] == "TrainJob" {
		steps(&j)
	}
	for _, word := range args[1:] {
		if err := set(&j, word); err != nil {
			return err
		}
	}
	s.world = newWorld(j)
	return s.rest()
}

// toPods does something to the named pods, or to all it can be done to.
func (s *player) toPods(verb string, args []string) error {
	switch verb {
	case "run":
		for _, pod := range s.those(args, func(p *corev1.Pod) bool { return p.Spec.NodeName == "" && owned(p, s.job) }) {
			s.start(pod, "node-"+pod.Labels[naming.LabelReplicaIndex])
		}
	case "stop":
		for _, pod := range s.those(args, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil && s.stops(p.Spec.NodeName) }) {
			s.gone(pod)
		}
	case "exit":
		code, _ := strconv.Atoi(args[1])
		for _, pod := range s.those(args[:1], nil) {
			s.exit(pod, int32(code), "Error", strings.Join(args[2:], " "))
		}
	default:
		return s.toPod(verb, s.those(args, nil))
	}
	return nil
}

func (s *player) toPod(verb string, pods []*corev1.Pod) error {
	if len(pods) != 1 {
		return fmt.Errorf("%s needs one pod that exists", verb)
	}
	pod := pods[0]
	switch verb {
	case "again":
		s.again(pod)
	case "oom":
		s.exit(pod, 137, "OOMKilled", "")
	case "reboot": // its node was away for a moment, and knows nothing of its containers
		s.exit(pod, 137, "ContainerStatusUnknown", "the local cluster stopped while the container ran")
		if pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
			s.again(pod)
		}
	case "evict":
		s.evict(pod, 137)
	case "drain": // the training saves a checkpoint and exits with 0, because it is asked to end
		s.deletePod(pod.Name, pod.UID, false)
		s.exit(pod, 0, "Completed", "")
	case "shutdown": // likewise, with its node
		s.shutDown(pod, 0)
	case "exceed":
		s.exceed(pod, 137)
	case "refuse":
		s.refusePod(pod, "node-"+pod.Labels[naming.LabelReplicaIndex])
	case "delete":
		s.deletePod(pod.Name, pod.UID, false)
	case "vanish":
		s.deletePod(pod.Name, pod.UID, true)
	case "unschedulable":
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available: insufficient nvidia.com/gpu."}}
		s.changed()
	case "unpullable":
		pod.Spec.NodeName = "node-0"
		s.main(pod).State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
		s.changed()
	default:
		return fmt.Errorf("no such thing can happen")
	}
	return nil
}

func (s *player) those(names []string, unnamed func(*corev1.Pod) bool) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if slices.Contains(names, strings.TrimPrefix(name, "demo-")) || len(names) == 0 && unnamed(s.pods[name]) {
			pods = append(pods, s.pods[name])
		}
	}
	return pods
}

func (s *player) createForeign(kind, name string) {
	if kind == "service" {
		s.createChild(service(name), "j0")
		return
	}
	role, index, _ := strings.Cut(strings.TrimPrefix(name, "demo-"), "-")
	i, _ := strconv.Atoi(index)
	for _, r := range s.job.Roles {
		if strings.EqualFold(r.Name, role) {
			s.pods[name] = s.newPod(Replica{r.Name, int32(i)}, 0, "j0")
			s.start(s.pods[name], "node-9")
		}
	}
}

// nodeLost is what the control plane does five minutes after a node went silent.
func (s *player) nodeLost(node string) {
	s.deadNodes[node] = NodeUnreachable
	for _, pod := range s.those(nil, func(p *corev1.Pod) bool { return p.Spec.NodeName == node }) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager", LastTransitionTime: metav1.NewTime(s.now),
		})
		s.deletePod(pod.Name, pod.UID, false)
	}
}

// after lets time pass; the controller wakes when it asked to, and once at the end.
func (s *player) after(duration string) error {
	length, err := time.ParseDuration(duration)
	if err != nil {
		return err
	}
	until := s.now.Add(length)
	for !s.asleep {
		o := s.observe(0)
		d := Decide(o)
		for d.Asks() {
			o = s.answer(o, d.Ask)
			d = Decide(o)
		}
		if d.RequeueAt.IsZero() || d.RequeueAt.After(until) || s.jobGone {
			break
		}
		s.now = d.RequeueAt
		fmt.Fprintf(s.out, "    at %s\n", s.now.Sub(epoch))
		if err := s.rest(); err != nil {
			return err
		}
	}
	s.now = until
	return s.rest()
}

func (s *player) rest() error {
	if s.asleep {
		return nil
	}
	if s.dies > 0 {
		d, _ := s.reconcile(chaos{crash: s.dies, lost: s.lost})
		s.print(d)
		s.out.WriteString("    the controller dies and starts again\n")
		s.dies = 0
	}
	return s.runToRest(s.print)
}

// inWords names a child as stories do; a job has one autoscaler at most.
func inWords(child Child) string {
	if child.ChildKind == Autoscalers {
		return "autoscaler"
	}
	words := strings.ToLower(child.Kind) + " " + child.GetName()
	if child.Members > 0 {
		words += fmt.Sprintf(" of %d", child.Members)
	}
	return words
}

// print writes a decision below its line.
func (s *player) print(d Decision) {
	line := func(format string, args ...any) { fmt.Fprintf(s.out, "    "+format+"\n", args...) }
	if d.Write != WriteNothing {
		st := d.Status
		state := st.Conditions[len(st.Conditions)-1].Type
		words := fmt.Sprintf("record %s, attempt %d, %d retries, %d disruptions, ready %s", state, st.Attempt, st.Retries, st.Disruptions, st.Ready)
		if st.Message != "" && state != Failed {
			words += ": " + st.Message
		}
		line("%s", words)
	}
	for _, del := range d.DeletePods {
		how := "delete"
		if del.Force {
			how = "force-delete"
		}
		line("%s pod %s: %s", how, del.Pod.Name, del.Why)
	}
	children := func(required bool) {
		for _, action := range []struct {
			verb     string
			children []Child
		}{{"delete", d.DeleteChildren}, {"create", d.CreateChildren}, {"update", d.UpdateChildren}} {
			for _, child := range action.children {
				if child.Required == required {
					line("%s %s", action.verb, inWords(child))
				}
			}
		}
	}
	children(true)
	for _, r := range d.CreatePods {
		line("create pod %s of attempt %d", s.job.PodName(r), d.Status.Attempt)
	}
	children(false)
	if d.SizeJob {
		line("write the number of replicas into the job")
	}
	if d.DeleteJob {
		line("delete the job")
	}
	for _, e := range d.Events {
		kind := "event"
		if e.Warning {
			kind = "warning"
		}
		line("%s %s: %s", kind, e.Reason, e.Message)
	}
}
