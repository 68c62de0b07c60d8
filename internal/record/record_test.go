package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheIndexHasTheLastSummaryOfEachJob(t *testing.T) {
	s := Open(t.TempDir())
	list := func(uid, state string, after time.Duration) {
		t.Helper()
		if err := s.List(Summary{Namespace: "default", UID: types.UID(uid), Name: uid, State: state, Created: day.Add(after)}); err != nil {
			t.Fatal(err)
		}
	}
	list("a", "Running", 0)
	list("b", "Running", 25*time.Hour)
	file, err := os.OpenFile(s.indexFile(day), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(file, `{"namespace":"default","uid":"a","state":"Fai`) // the recorder was killed
	_ = file.Close()
	list("c", "Running", time.Hour)
	list("a", "Succeeded", 0)
	all, err := s.Summaries()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, summary := range all {
		got = append(got, summary.Name+" "+summary.State)
	}
	if diff := cmp.Diff([]string{"b Running", "c Running", "a Succeeded"}, got); diff != "" {
		t.Errorf("other jobs (-want +got):\n%s", diff)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	for name, row := range map[string]struct {
		value  string
		masked bool
	}{
		"WANDB_API_KEY": {"0123abcd", true}, "HF_TOKEN": {"anything", true}, "dbPassword": {"x1", true}, "AWS_SECRET_ACCESS_KEY": {"x", true},
		"DB_PWD": {"x", true}, "DATABASE": {"postgres://me:word@host/db", true}, "HARMLESS": {"hf_abcdefghijklmnopqrst", true},
		"PGPASSWORD": {"12345", true}, "CACHE": {"redis://:secret@host/0", true}, "CERT": {"-----BEGIN RSA PRIVATE KEY-----", true}, "LR": {"0.1", false}, "MAX_TOKENS": {"2048", false}, "TOKENIZERS_PARALLELISM": {"maybe", false},
		"PWD": {"/home/me", false}, "USE_AUTH": {"true", false}, "MASTER_ADDR": {"demo-master-0", false}, "MONKEY": {"banana", false}, "TOKEN": {"", false},
	} {
		if got := looksSecret(name, row.value); got != row.masked {
			t.Errorf("%s=%s looks like a secret: %t", name, row.value, got)
		}
	}
	var object map[string]any
	text := `{"metadata":{"managedFields":[{}],"annotations":{"mine":"1","kubectl.kubernetes.io/last-applied-configuration":"{HF_TOKEN}"}},
	  "spec":{"a":[{"template":{"spec":{"containers":[{"env":[{"name":"HF_TOKEN","value":"abc"},{"name":"LR","value":"0.1"},{"name":"KEY","valueFrom":{}}]}]}}}]}}`
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	Mask(object)
	got, _ := json.Marshal(object)
	want := `{"metadata":{"annotations":{"mine":"1"}},"spec":{"a":[{"template":{"spec":{"containers":[{"env":[` +
		`{"name":"HF_TOKEN","value":"(masked)"},{"name":"LR","value":"0.1"},{"name":"KEY","valueFrom":{}}]}]}}}]}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("not masked (-want +got):\n%s", diff)
	}
}

func TestPruneRemovesWhatIsOldAndWhatIsTooMuch(t *testing.T) {
	now := day.Add(40 * 24 * time.Hour)
	for _, row := range []struct {
		sentence string
		limits   Limits
		want     []string
	}{
		{"nothing is too old or too large", Limits{Age: 1000 * time.Hour, Size: 1 << 30}, []string{"old", "young", "trains"}},
		{"a job that ended long ago goes, one that still trains stays", Limits{Age: 30 * 24 * time.Hour, Size: 1 << 30}, []string{"young", "trains"}},
		{"what ended first goes until the rest is small enough", Limits{Age: 1000 * time.Hour, Size: 250_000}, []string{"young", "trains"}},
		{"without any age, all go but the one that still trains", Limits{Size: 1 << 30}, []string{"trains"}},
		{"a job that still trains stays whatever its size", Limits{Age: 1000 * time.Hour}, []string{"trains"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			s := Open(t.TempDir())
			for name, ended := range map[string]time.Time{"old": day.Add(time.Hour), "young": now.Add(-time.Hour), "trains": {}} {
				summary := Summary{Namespace: "default", UID: types.UID(name), Name: name, Created: day, Ended: ended}
				if err := s.Save(&Record{Summary: summary, Object: json.RawMessage(`{}`)}); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(s.jobDir("default", summary.UID), "log"), make([]byte, 100_000), 0o600); err != nil {
					t.Fatal(err)
				}
				if name == "young" { // the index lacks it
					continue
				}
				if err := s.List(summary); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Prune(row.limits, now); err != nil {
				t.Fatal(err)
			}
			left, err := s.Summaries()
			if err != nil || len(left) != len(row.want) {
				t.Errorf("left are %v, %v", left, err)
			}
			for _, name := range row.want {
				if _, err := s.Load("default", types.UID(name)); err != nil {
					t.Errorf("%s is gone: %v", name, err)
				}
			}
			if dirs, _ := os.ReadDir(filepath.Join(s.dir, "v1", "jobs", "default")); len(dirs) != len(row.want) {
				t.Errorf("%d jobs are left on disk", len(dirs))
			}
		})
	}
}

// A crash of the machine can leave a file that was never written. Whoever needs it says which file that is.
func TestADamagedRecordIsNamedAndKept(t *testing.T) {
	s := Open(t.TempDir())
	file := s.recordFile("default", "a")
	if err := s.Save(&Record{Summary: Summary{Namespace: "default", UID: "a", Ended: day}, Object: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load("default", "a"); err == nil || !strings.Contains(err.Error(), file+" is damaged") {
		t.Errorf("loading it says %v", err)
	}
	done, err := s.Prune(Limits{}, day.Add(time.Hour))
	if err != nil || done.Jobs != 0 || len(done.Unreadable) != 1 || !strings.Contains(done.Unreadable[0].Error(), file) {
		t.Errorf("pruning says %v, %v", done, err)
	}
	aside, err := s.SetAside("default", "a")
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(aside); err != nil || len(content) != 10 {
		t.Errorf("%s has %q: %v", aside, content, err)
	}
	if _, err := s.Load("default", "a"); !errors.Is(err, ErrNone) {
		t.Errorf("after it was set aside, loading says %v", err)
	}
}

func TestAReplicaThatWasStoppedDidNotFail(t *testing.T) {
	deleted, grace := metav1.NewTime(day.Add(30*time.Second)), int64(30)
	for _, row := range []struct {
		sentence string
		deleted  *metav1.Time
		end      corev1.ContainerStateTerminated
		want     bool
	}{
		{"it failed, and its pod stays", nil, corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(day)}, false},
		{"it failed, and its pod was deleted in the same second", &deleted, corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(day)}, false},
		{"its memory was full, and its pod was deleted in the same second", &deleted, corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", FinishedAt: metav1.NewTime(day)}, false},
		{"it failed before", &deleted, corev1.ContainerStateTerminated{ExitCode: 143, FinishedAt: metav1.NewTime(day.Add(-time.Second))}, false},
		{"it was terminated in the second of the deletion", &deleted, corev1.ContainerStateTerminated{ExitCode: 143, FinishedAt: metav1.NewTime(day)}, true},
		{"it failed while its pod was being deleted", &deleted, corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(day.Add(time.Second))}, true},
		{"it ended well while its pod was being deleted", &deleted, corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(day.Add(time.Second))}, false},
	} {
		pod := Pod{Pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: row.deleted, DeletionGracePeriodSeconds: &grace}}}
		if got := pod.Stopped(&row.end); got != row.want {
			t.Errorf("%s: it was stopped: %t", row.sentence, got)
		}
	}
}
