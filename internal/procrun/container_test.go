package procrun

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestExitCodes(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("codes")
	for name, tt := range map[string]struct {
		script string
		code   int32
		reason string
	}{
		"success is completed":                 {"exit 0", 0, "Completed"},
		"a failure keeps its code":             {"exit 3", 3, "Error"},
		"the largest code":                     {"exit 255", 255, "Error"},
		"SIGKILL is 137":                       {"kill -KILL $$", 137, "Error"},
		"SIGTERM is 143":                       {"kill -TERM $$", 143, "Error"},
		"SIGSEGV is 139":                       {"kill -SEGV $$", 139, "Error"},
		"a command the shell does not know":    {"no-such-command", 127, "Error"},
		"the end of a child is not the end":    {"(exit 7) & wait; exit 0", 0, "Completed"},
		"background children do not hold it":   {"sleep 1000 & exit 4", 4, "Error"},
		"daemons do not hold it":               {"setsid sleep 1000 >/dev/null 2>&1 & exit 5", 5, "Error"},
		"a daemon with the output in its hand": {"setsid sleep 1000 & exit 6", 6, "Error"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			status := w.ended(w.start(pod, tt.script))
			if status.GetExitCode() != tt.code || status.GetReason() != tt.reason {
				t.Errorf("got %d %s, want %d %s", status.GetExitCode(), status.GetReason(), tt.code, tt.reason)
			}
		})
	}
}

func TestWhatAContainerSees(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Env = append(c.Env, "INHERITED=yes", "OVERRIDDEN=no")
		c.GPUs = []string{"GPU-1"}
	})
	pod := w.pod("seer")
	for name, tt := range map[string]struct {
		script string
		change func(*v1.ContainerConfig)
		want   string
	}{
		"a PID namespace of its own":            {"echo $PPID; cat /proc/$PPID/comm", nil, "1 trainyard-init"},
		"a network of its own":                  {"ls /sys/class/net", nil, "eth0 lo"},
		"the default directory":                 {"pwd", nil, "/tmp"},
		"the directory that its PWD names":      {"pwd", func(c *v1.ContainerConfig) { c.Envs = []*v1.KeyValue{{Key: "PWD", Value: []byte("/usr")}} }, "/usr"},
		"a directory of its choice":             {"pwd", func(c *v1.ContainerConfig) { c.WorkingDir = "/usr" }, "/usr"},
		"what the person's shell has":           {"echo $INHERITED $HOME", nil, "yes /tmp"},
		"its own variables win":                 {"echo $OVERRIDDEN", env("OVERRIDDEN", "by me"), "by me"},
		"no GPU unless one is assigned":         {"echo ${CUDA_VISIBLE_DEVICES-unset}.", nil, "."},
		"the GPU that is assigned":              {"echo $CUDA_VISIBLE_DEVICES", env("CUDA_VISIBLE_DEVICES", "GPU-1"), "GPU-1"},
		"the umask of containers everywhere":    {"umask", nil, "0022"},
		"no input":                              {"cat; echo end", nil, "end"},
		"nothing of the runtime's own":          {"ls /proc/self/fd; echo ${GOMAXPROCS-unset}", nil, "0 1 2 3 unset"},
		"arguments after the command, as given": {"", arguments, "a b * $HOME"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			var changes []func(*v1.ContainerConfig)
			if tt.change != nil {
				changes = append(changes, tt.change)
			}
			out, code := w.run(pod, tt.script, changes...)
			if words := strings.Join(strings.Fields(out), " "); code != 0 || words != tt.want {
				t.Errorf("exit code %d, output %q, want %q", code, words, tt.want)
			}
		})
	}
}

func env(key, value string) func(*v1.ContainerConfig) {
	return func(c *v1.ContainerConfig) { c.Envs = []*v1.KeyValue{{Key: key, Value: []byte(value)}} }
}

func arguments(c *v1.ContainerConfig) {
	c.Command, c.Args = []string{"printf", "%s\\n"}, []string{"a b", "*", "$HOME"}
}

func TestCommandsThatCannotStart(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("unstartable")
	plain := w.file("plain", "not a program")
	for name, tt := range map[string]struct {
		change func(*v1.ContainerConfig)
		code   int32
		want   string
	}{
		"not in PATH":        {command("no-such-command"), 127, `exec: "no-such-command": not found in PATH`},
		"no such file":       {command("/no/such/file"), 127, `exec: "/no/such/file": no such file or directory`},
		"not executable":     {command(plain), 126, `permission denied`},
		"a directory":        {command("/tmp"), 126, `exec: "/tmp": is a directory`},
		"no such directory":  {func(c *v1.ContainerConfig) { c.WorkingDir = "/no/such" }, 128, `working directory "/no/such" does not exist`},
		"a file to work in":  {func(c *v1.ContainerConfig) { c.WorkingDir = plain }, 128, "is not a directory"},
		"a volume on a file": {func(c *v1.ContainerConfig) { c.Mounts = []*v1.Mount{{HostPath: w.dir, ContainerPath: plain}} }, 128, "one is a directory and the other is a file"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			id := w.create(pod, "true", tt.change)
			err := w.StartContainer(context.Background(), id)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `container "main" of pod default/unstartable`) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			status := w.ended(id)
			if status.GetExitCode() != tt.code || status.GetReason() != "StartError" || !strings.Contains(status.GetMessage(), tt.want) {
				t.Errorf("status is %v", status)
			}
		})
	}
}

func command(words ...string) func(*v1.ContainerConfig) {
	return func(c *v1.ContainerConfig) { c.Command = words }
}

func TestContainersThatCannotBe(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("impossible")
	other := int64(4242)
	for name, tt := range map[string]struct {
		change func(*v1.ContainerConfig)
		want   string // as an ordinary user
		asRoot string // the same as root; "" is possible
	}{
		"no command":     {func(c *v1.ContainerConfig) { c.Command = nil }, errNoCommand.Error(), errNoCommand.Error()},
		"arguments only": {func(c *v1.ContainerConfig) { c.Command, c.Args = nil, []string{"x"} }, errNoCommand.Error(), errNoCommand.Error()},
		"a volume of an image": {func(c *v1.ContainerConfig) {
			c.Mounts = []*v1.Mount{{Image: &v1.ImageSpec{Image: "i"}, ContainerPath: "/i"}}
		}, "volume at /i is of an image", "volume at /i is of an image"},
		"somebody else": {runAs(other, nil), "runAsUser 4242 is not possible", ""},
		"a user without a name": {func(c *v1.ContainerConfig) {
			c.Linux = security(&v1.LinuxContainerSecurityContext{RunAsUsername: "no-such-user"})
		}, "no-such-user", "no-such-user"},
		"a pod that is not here": {nil, "not found", "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			config := &v1.ContainerConfig{Metadata: &v1.ContainerMetadata{Name: "main"}, Command: []string{"true"}}
			in := pod
			if tt.change != nil {
				tt.change(config)
			} else {
				in = "nowhere"
			}
			want := tt.want
			if !rootless() {
				want = tt.asRoot
			}
			_, err := w.CreateContainer(context.Background(), in, config, podConfig(w, "impossible"))
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func security(s *v1.LinuxContainerSecurityContext) *v1.LinuxContainerConfig {
	return &v1.LinuxContainerConfig{SecurityContext: s}
}

func runAs(user int64, group *int64, groups ...int64) func(*v1.ContainerConfig) {
	return func(c *v1.ContainerConfig) {
		s := &v1.LinuxContainerSecurityContext{RunAsUser: &v1.Int64Value{Value: user}, SupplementalGroups: groups}
		if group != nil {
			s.RunAsGroup = &v1.Int64Value{Value: *group}
		}
		c.Linux = security(s)
	}
}

func TestUsers(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("users")
	if rootless() {
		me := int64(w.config.User.UID)
		for name, change := range map[string]func(*v1.ContainerConfig){
			"by default": func(*v1.ContainerConfig) {}, "by his number": runAs(me, nil),
		} {
			t.Run(name, func(t *testing.T) {
				w := w.in(t)
				out, _ := w.run(pod, "id -u; id -g; echo x > "+w.dir+"/mine; cat /proc/self/status | grep CapEff", change)
				if want := fmt.Sprintf("%d\n%d\nCapEff:\t0000000000000000\n", me, me); out != want {
					t.Errorf("got %q, want %q", out, want)
				}
			})
		}
		return
	}
	group := int64(7)
	for name, tt := range map[string]struct {
		change func(*v1.ContainerConfig)
		want   string
	}{
		"root by default":          {func(*v1.ContainerConfig) {}, "0 0 0"},
		"a user of the machine":    {runAs(65534, nil), "65534 65534 65534"},
		"a user nobody knows":      {runAs(4242, nil), "4242 0 0"},
		"a group":                  {runAs(4242, &group), "4242 7 7"},
		"supplemental groups":      {runAs(4242, &group, 8, 9), "4242 7 7 8 9"},
		"root with further groups": {runAs(0, nil, 8), "0 0 0 8"},
		"a user by name": {func(c *v1.ContainerConfig) {
			c.Linux = security(&v1.LinuxContainerSecurityContext{RunAsUsername: "nobody"})
		}, "65534 65534 65534"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			out, _ := w.run(pod, "id -u; id -g; id -G", tt.change)
			if words := strings.Join(strings.Fields(out), " "); words != tt.want {
				t.Errorf("got %q, want %q", words, tt.want)
			}
		})
	}
}

// The folder of this program is closed to others under `go test`, as /root is.
func TestAnotherUserSeesThisProgramWhereAContainerWants(t *testing.T) {
	if rootless() {
		return // there is no other user
	}
	w := newWorld(t)
	out, code := w.run(w.pod("program"), `head -c4 /program-of-test | tail -c3; test -x /program-of-test && echo " runs"`, runAs(65534, nil), func(c *v1.ContainerConfig) {
		c.Envs = append(c.Envs, &v1.KeyValue{Key: ProgramAt, Value: []byte("/program-of-test")})
	})
	if out != "ELF runs\n" || code != 0 {
		t.Errorf("got %q and exit code %d", out, code)
	}
}

func TestNoNewPrivileges(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("nnp")
	for _, wanted := range []bool{true, false} {
		out, _ := w.run(pod, "grep NoNewPrivs /proc/self/status", func(c *v1.ContainerConfig) {
			c.Linux = security(&v1.LinuxContainerSecurityContext{NoNewPrivs: wanted})
		})
		if want := map[bool]string{true: "NoNewPrivs:\t1\n", false: "NoNewPrivs:\t0\n"}[wanted]; out != want {
			t.Errorf("got %q, want %q", out, want)
		}
	}
}

func TestSharedProcessNamespace(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("shared", func(c *v1.PodSandboxConfig) { c.Linux.SecurityContext.NamespaceOptions.Pid = v1.NamespaceMode_POD })
	first := w.start(pod, "exec sleep 27182")
	out, _ := w.run(pod, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; cat /proc/1/comm")
	if !strings.Contains(out, "sleep 27182") || !strings.HasSuffix(out, "trainyard-init\n") {
		t.Errorf("the second container sees %q", out)
	}
	if stdout, _, err := w.ExecSync(context.Background(), first, []string{"cat", "/proc/1/comm"}, 0); err != nil || string(stdout) != "trainyard-init\n" {
		t.Errorf("a command in the first sees %q, %v", stdout, err)
	}
	w.must(w.StopPodSandbox(context.Background(), pod))
	if status := w.ended(first); status.GetExitCode() != 137 {
		t.Errorf("it ended with %d", status.GetExitCode())
	}
}

// A debugging container sees the processes of the one it looks into, and leaves them alone when it ends.
func TestLookingIntoAContainer(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("debugged")
	target := w.start(pod, "exec sleep 16180")
	look := func(c *v1.ContainerConfig) {
		c.Linux = security(&v1.LinuxContainerSecurityContext{
			NamespaceOptions: &v1.NamespaceOption{Pid: v1.NamespaceMode_TARGET, TargetId: target},
		})
	}
	if out, _ := w.run(pod, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", look); !strings.Contains(out, "sleep 16180") {
		t.Errorf("it sees %q", out)
	}
	w.must(w.running(target))
	w.must(w.StopContainer(context.Background(), target, 0))
	id := w.create(pod, "true", look)
	if err := w.StartContainer(context.Background(), id); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("looking into one that has ended: %v", err)
	}
}

func TestStates(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("states")
	id := w.create(pod, "echo ready; exec sleep 1000")
	list := func(state v1.ContainerState) int {
		found, err := w.ListContainers(context.Background(), &v1.ContainerFilter{
			Id: id, PodSandboxId: pod, State: &v1.ContainerStateValue{State: state}, LabelSelector: map[string]string{"container": "main"},
		})
		w.must(err)
		return len(found)
	}
	check := func(state v1.ContainerState) {
		t.Helper()
		status, err := w.ContainerStatus(context.Background(), id, false)
		w.must(err)
		if status.GetStatus().GetState() != state || list(state) != 1 {
			t.Errorf("state is %s, want %s", status.GetStatus().GetState(), state)
		}
	}
	check(v1.ContainerState_CONTAINER_CREATED)
	w.must(w.StartContainer(context.Background(), id))
	check(v1.ContainerState_CONTAINER_RUNNING)
	if err := w.StartContainer(context.Background(), id); err == nil {
		t.Error("a container starts once")
	}
	w.must(w.StopContainer(context.Background(), id, 1))
	check(v1.ContainerState_CONTAINER_EXITED)
	w.must(w.RemoveContainer(context.Background(), id))
	w.must(w.RemoveContainer(context.Background(), id))
	_, err := w.ContainerStatus(context.Background(), id, false)
	if status.Code(err) != codes.NotFound {
		t.Errorf("a removed container: %v", err)
	}
}
