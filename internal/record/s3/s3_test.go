package s3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/internal/record"
)

var day = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

var worker = record.Log{Replica: "worker-0", Container: "pytorch", Pod: "p1"}

// fault is what is wrong with the server.
type fault int32

const (
	none     fault = iota
	refuses        // it answers 500
	hangs          // it does not answer
	forgets        // it does what it is asked to, and its answer is lost
	numFault       // how many there are
)

// server is a real server of S3's protocol that can be faulty.
type server struct {
	*testing.T
	*httptest.Server
	fault    atomic.Int32
	requests atomic.Int32
}

func newServer(t *testing.T) *server {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	backend := s3mem.New()
	if err := backend.CreateBucket("records"); err != nil {
		t.Fatal(err)
	}
	s, handler := &server{T: t}, gofakes3.New(backend).Server()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		switch fault(s.fault.Load()) {
		case refuses:
			w.WriteHeader(http.StatusInternalServerError)
		case hangs:
			_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client is gone
			<-r.Context().Done()
		case forgets:
			handler.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s
}

// store is a store in the bucket, with an empty disk.
func (s *server) store() *record.Store { return s.storeOn(s.TempDir()) }

func (s *server) storeOn(dir string) *record.Store {
	s.Helper()
	store, err := OpenStore("s3://records/team/a?region=us-east-1&endpoint="+s.URL, dir)
	if err != nil {
		s.Fatal(err)
	}
	return store
}

// restarted is the store of a process that begins.
func (s *server) restarted(dir string) *record.Store {
	s.Helper()
	store := s.storeOn(dir)
	if err := store.Fetch(s.Context()); err != nil {
		s.Fatal(err)
	}
	return store
}

func (s *server) upload(store *record.Store) {
	s.Helper()
	if err := store.UploadAll(s.Context(), time.Now()); err != nil {
		s.Fatal(err)
	}
}

// entries are lines, a second apart. Their texts do not compress well.
func entries(from, to int) (out []byte) {
	random := rand.New(rand.NewSource(int64(from)))
	for i := from; i < to; i++ {
		text := make([]byte, 250)
		_, _ = random.Read(text)
		out = fmt.Appendf(out, "%s stdout F line %d %x\n", day.Add(time.Duration(i)*time.Second).Format(time.RFC3339Nano), i, text)
	}
	return out
}

// save records a job.
func (s *server) save(store *record.Store, uid string, change func(*record.Summary)) {
	s.Helper()
	summary := record.Summary{Namespace: "default", UID: types.UID("j" + uid), Name: "demo-" + uid, Kind: "PyTorchJob", Created: day}
	change(&summary)
	err := store.Save(&record.Record{Summary: summary, Object: json.RawMessage(`{}`)})
	if err == nil {
		err = store.List(summary)
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *server) write(store *record.Store) *record.LogWriter {
	s.Helper()
	w, err := store.WriteLog("default", "j1", worker)
	if err != nil {
		s.Fatal(err)
	}
	return w
}

// has reads a log in both ways: the numbers of its lines, and the gaps.
func (s *server) has(store *record.Store) (lines []int, gaps []string) {
	s.Helper()
	take := func(text string, gap bool) {
		n := 0
		if _, err := fmt.Sscanf(text, "line %d ", &n); gap || err != nil {
			gaps = append(gaps, text)
			return
		}
		lines = append(lines, n)
	}
	err := store.ReadLog("default", "j1", worker, record.Query{}, func(e record.Entry) error {
		take(string(e.Text), e.IsGap())
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	wantLines, wantGaps := lines, gaps
	lines, gaps = nil, nil
	if err := store.Lines("default", "j1", worker, 0, func(l record.Line) bool { take(string(l.Text), l.Gap); return true }); err != nil {
		s.Fatal(err)
	}
	if d := cmp.Diff(wantLines, lines) + cmp.Diff(wantGaps, gaps); d != "" {
		s.Errorf("ReadLog and Lines differ: %s", d)
	}
	return lines, gaps
}

// hasLines checks that each line is there once.
func (s *server) hasLines(store *record.Store, want int) {
	s.Helper()
	lines, gaps := s.has(store)
	if len(lines) != want || len(gaps) > 0 {
		s.Errorf("it has %d lines and the gaps %q, want %d lines", len(lines), gaps, want)
	}
	for i, n := range lines {
		if n != i {
			s.Fatalf("line %d is where line %d should be", n, i)
		}
	}
}

// TestEveryLineReachesTheBucketOnce lets the server fail in all ways, and the recorder be killed and lose its disk, while a log is written.
func TestEveryLineReachesTheBucketOnce(t *testing.T) {
	for seed := range int64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewSource(seed))
			s := newServer(t)
			dir := t.TempDir()
			store := s.restarted(dir)
			s.save(store, "1", func(*record.Summary) {})
			s.upload(store)
			w, written, failures := s.write(store), 0, 0
			for range 50 {
				switch random.Intn(12) {
				case 0: // the recorder is killed, and may lose its disk. It reads again what it does not have.
					if random.Intn(2) == 0 {
						dir = t.TempDir()
					}
					s.fault.Store(int32(none))
					store = s.restarted(dir)
					w = s.write(store)
					if last, _ := w.Last(); last.IsZero() {
						written = 0
					} else {
						written = int(last.Sub(day)/time.Second) + 1
					}
				case 1, 2:
					s.fault.Store(random.Int31n(int32(numFault)))
				case 3, 4, 5:
					limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					if fault(s.fault.Load()) != hangs {
						limited = t.Context()
					}
					if err := store.Upload(limited, time.Now()); err != nil {
						failures++
					} else if fault(s.fault.Load()) == refuses && len(partsOn(dir)) > 0 {
						t.Error("an upload that the server refuses has no error")
					}
					cancel()
				default:
					more := random.Intn(1500)
					if err := w.Write(entries(written, written+more)); err != nil {
						t.Fatal(err)
					}
					written += more
				}
			}
			s.fault.Store(int32(none))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			s.hasLines(store, written)
			s.upload(store)
			if left := partsOn(dir); len(left) > 0 {
				t.Errorf("the disk still has %q", left)
			}
			s.hasLines(store, written)
			s.hasLines(s.store(), written)
			t.Logf("%d lines, %d uploads failed", written, failures)
		})
	}
}

// partsOn are the parts of logs on a disk.
func partsOn(dir string) []string {
	parts, _ := filepath.Glob(filepath.Join(dir, "v1/jobs/*/*/log/*/*/*/*.gz"))
	return parts
}

// TestWhatTheDiskCannotHoldIsAGap lets an outage take longer than the disk can hold what is written.
func TestWhatTheDiskCannotHoldIsAGap(t *testing.T) {
	s := newServer(t)
	store := s.store()
	store.Limits.Held = 2 << 20
	s.save(store, "1", func(*record.Summary) {})
	w := s.write(store)
	write := func(from, to int) {
		t.Helper()
		for i := from; i < to; i += 1000 {
			if err := w.Write(entries(i, i+1000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(0, 5_000)
	s.upload(store)
	s.fault.Store(int32(refuses))
	write(5_000, 30_000)
	if err := store.Upload(t.Context(), time.Now()); err == nil {
		t.Fatal("an upload that the server refuses has no error")
	}
	s.fault.Store(int32(none))
	write(30_000, 31_000)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.upload(store)
	lines, gaps := s.has(s.store())
	lost := 0
	for _, gap := range gaps {
		n := 0
		if _, err := fmt.Sscanf(gap, "%d lines are missing: the object store did not take them", &n); err != nil {
			t.Errorf("a gap says %q", gap)
		}
		lost += n
	}
	if len(lines)+lost != 31_000 || lost < 5_000 || lost > 25_000 {
		t.Errorf("%d lines are there, and %d are said to be lost", len(lines), lost)
	}
	total, err := s.store().Count("default", "j1", worker)
	if err != nil || total != 31_000 {
		t.Errorf("the log has %d lines, %v", total, err)
	}
}

// TestRecordsInTheBucket follows the records of jobs from one process to the next, and to their removal.
func TestRecordsInTheBucket(t *testing.T) {
	s := newServer(t)
	dir := t.TempDir()
	store := s.restarted(dir)
	s.save(store, "1", func(*record.Summary) {})
	ended := time.Now().Add(-time.Hour).Truncate(time.Second)
	s.save(store, "2", func(j *record.Summary) { j.Ended, j.Deleted, j.Complete = ended, ended, true })
	if err := store.AddUsage("default", "j1", []record.Use{{Pod: "p1", Cores: 1}}); err != nil {
		t.Fatal(err)
	}
	s.upload(store)
	before := s.requests.Load()
	if err := store.Upload(t.Context(), time.Now()); err != nil || s.requests.Load() != before {
		t.Errorf("what has not changed costs %d requests, %v", s.requests.Load()-before, err)
	}

	reader := s.store()
	for _, r := range []*record.Store{reader, s.restarted(t.TempDir())} {
		all, err := r.Summaries()
		if err != nil || len(all) != 2 || !r.Exists() {
			t.Fatalf("another process finds %v, %v", all, err)
		}
		for _, summary := range all {
			if _, err := r.Load(summary.Namespace, summary.UID); err != nil {
				t.Errorf("%s: %v", summary.Name, err)
			}
		}
		if uses, err := r.Usage("default", "j1"); err != nil || len(uses) != 1 {
			t.Errorf("the usage is %v, %v", uses, err)
		}
	}
	if _, err := reader.Load("default", "j9"); !errors.Is(err, record.ErrNone) {
		t.Errorf("a job that nobody recorded: %v", err)
	}

	next := s.restarted(t.TempDir()) // it continues with an empty disk
	if err := next.AddUsage("default", "j1", []record.Use{{Pod: "p1", Cores: 2}}); err != nil {
		t.Fatal(err)
	}
	s.save(next, "1", func(j *record.Summary) { j.State = "Running" })
	s.upload(next)
	if uses, err := reader.Usage("default", "j1"); err != nil || len(uses) != 2 {
		t.Errorf("the usage is now %v, %v", uses, err)
	}
	if all, err := reader.Summaries(); err != nil || len(all) != 2 || all[0].State+all[1].State != "Running" {
		t.Errorf("the list is now %+v, %v", all, err)
	}

	// A job that is deleted is not needed on disk. It is removed from the bucket when it is old.
	if done, err := store.Prune(record.DefaultLimits, time.Now()); err != nil || done.Jobs != 0 {
		t.Errorf("removed are %+v, %v", done, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "v1/jobs/default/j2")); !os.IsNotExist(err) {
		t.Errorf("what is uploaded of a deleted job is still on disk: %v", err)
	}
	if _, err := store.Load("default", "j2"); err != nil {
		t.Error(err)
	}
	limits := record.DefaultLimits
	limits.Age = 30 * time.Minute
	if done, err := store.Prune(limits, time.Now()); err != nil || done.Jobs != 1 || done.Bytes == 0 {
		t.Errorf("removed are %+v, %v", done, err)
	}
	s.upload(store)
	if all, err := s.store().Summaries(); err != nil || len(all) != 1 || all[0].UID != "j1" {
		t.Errorf("the list is at last %+v, %v", all, err)
	}
	if _, err := s.store().Load("default", "j2"); !errors.Is(err, record.ErrNone) {
		t.Errorf("a job that is removed: %v", err)
	}
}

func TestAddressesOfStores(t *testing.T) {
	for address, want := range map[string]string{
		"s3://":                              "is not the address of a bucket",
		"gs://bucket":                        "is not the address of a bucket: use s3://BUCKET/PREFIX",
		"s3://bucket?endpoint=minio:9000":    "use http://HOST:PORT or https://HOST:PORT",
		"s3://bucket?endpoint=http://a/b":    "use http://HOST:PORT or https://HOST:PORT",
		"s3://bucket/p?endpont=http://minio": "a bucket has no endpont: use endpoint or region",
		"s3://bucket/p":                      "",
		"s3://bucket/p?region=eu-central-1":  "",
		"a/path":                             "",
	} {
		_, err := OpenStore(address, t.TempDir())
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	s := newServer(t)
	missing, err := OpenStore("s3://other?region=us-east-1&endpoint="+s.URL, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := missing.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no bucket other: create it") {
		t.Errorf("a bucket that does not exist: %v", err)
	}
}
