package procrun

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trainyard/trainyard/internal/procrun/pid1"
)

// errNoCommand is for people who rely on their image's entry point.
var errNoCommand = errors.New("the local cluster ignores images, so the container needs a `command`")

// specify translates what kubelet wants into what the supervisor does.
func (r *Runtime) specify(s *sandbox, c *container) (pid1.Spec, error) {
	if len(c.config.GetCommand()) == 0 {
		return pid1.Spec{}, errNoCommand
	}
	security := c.config.GetLinux().GetSecurityContext()
	who, err := r.user(security)
	if err != nil {
		return pid1.Spec{}, err
	}
	mounts, err := r.mounts(s, c.config.GetMounts())
	if err != nil {
		return pid1.Spec{}, err
	}
	if mounts, err = withProgram(mounts, c.config.GetEnvs()); err != nil {
		return pid1.Spec{}, err
	}
	spec := pid1.Spec{
		Args: slices.Concat(c.config.GetCommand(), c.config.GetArgs()),
		Env:  r.environment(s, c.config.GetEnvs(), who),
		Dir:  c.config.GetWorkingDir(),
		User: who,
		View: &pid1.View{
			Mounts:   mounts,
			ReadOnly: security.GetReadonlyRootfs(),
			Proc:     c.pidMode(s) != v1.NamespaceMode_NODE,
		},
		TTY:         c.config.GetTty(),
		NoNewPrivs:  security.GetNoNewPrivs(),
		OOMScoreAdj: int(c.config.GetLinux().GetResources().GetOomScoreAdj()),
		KillOrphans: c.pidMode(s) != v1.NamespaceMode_CONTAINER,
	}
	if spec.Dir == "" {
		spec.Dir = r.workDir(c.config.GetEnvs())
	}
	return spec, nil
}

// workDir is where a container starts that names no directory: where its own PWD says, as a shell would have it, else where
// the runtime's do.
func (r *Runtime) workDir(own []*v1.KeyValue) string {
	for _, kv := range slices.Backward(own) {
		if dir := string(kv.GetValue()); kv.GetKey() == "PWD" && filepath.IsAbs(dir) {
			return dir
		}
	}
	return r.config.WorkDir
}

// mounts lists the pod's own files and then kubelet's mounts, which may cover them.
func (r *Runtime) mounts(s *sandbox, volumes []*v1.Mount) ([]pid1.Mount, error) {
	var mounts []pid1.Mount
	own := map[string]string{"resolv.conf": "/etc/resolv.conf", "hostname": "/etc/hostname"}
	for _, name := range []string{"resolv.conf", "hostname"} {
		source := r.dir("pods", s.id, name)
		// /etc is not worth a mirror for a host name that nobody reads from there.
		if exists(source) && (name == "resolv.conf" || exists(own[name])) {
			mounts = append(mounts, pid1.Mount{Source: source, Target: own[name]})
		}
	}
	if !s.hostIPC() {
		mounts = append(mounts, pid1.Mount{Source: r.dir("pods", s.id, "shm"), Target: "/dev/shm"})
	}
	for _, m := range volumes {
		source, target := filepath.Clean(m.GetHostPath()), filepath.Join("/", m.GetContainerPath())
		if m.GetImage().GetImage() != "" {
			return nil, fmt.Errorf("volume at %s is of an image, and the local cluster has none", target)
		}
		if !exists(source) {
			if err := os.MkdirAll(source, 0o755); err != nil {
				return nil, fmt.Errorf("creating %s to mount at %s: %w", source, target, err)
			}
		}
		mounts = slices.DeleteFunc(mounts, func(o pid1.Mount) bool { return o.Target == target })
		mounts = append(mounts, pid1.Mount{
			Source: source, Target: target,
			ReadOnly: m.GetReadonly(), RecursiveReadOnly: m.GetRecursiveReadOnly(),
		})
	}
	return mounts, nil
}

// ProgramAt is the variable of a container that names a path at which the container sees this program. Its user need not be able to reach
// the folder where the program lies, which may be root's own.
const ProgramAt = "TRAINYARD_PROGRAM_AT"

// withProgram mounts this program where a container wants it.
func withProgram(mounts []pid1.Mount, own []*v1.KeyValue) ([]pid1.Mount, error) {
	for _, kv := range own {
		if kv.GetKey() != ProgramAt {
			continue
		}
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding this program: %w", err)
		}
		mounts = append(mounts, pid1.Mount{Source: program, Target: filepath.Join("/", string(kv.GetValue())), ReadOnly: true})
	}
	return mounts, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// OwnEnvironment is the variable of a container that brings all that it needs of another shell than the one that started the
// cluster. It inherits who the person is, and nothing else.
const OwnEnvironment = "TRAINYARD_OWN_ENVIRONMENT"

// Identity names the variables that say who the person is.
var Identity = []string{"HOME", "USER", "LOGNAME", "SHELL"}

// environment is what the person's shell has, then the container's own; the later of two wins.
func (r *Runtime) environment(s *sandbox, own []*v1.KeyValue, who pid1.User) []string {
	env := slices.Clone(r.config.Env)
	if slices.ContainsFunc(own, func(kv *v1.KeyValue) bool { return kv.GetKey() == OwnEnvironment }) {
		env = slices.DeleteFunc(env, func(variable string) bool {
			name, _, _ := strings.Cut(variable, "=")
			return !slices.Contains(Identity, name)
		})
	}
	if u, err := user.LookupId(strconv.Itoa(int(who.UID))); err == nil && !who.Mapped && who.UID != 0 {
		env = append(env, "HOME="+u.HomeDir)
	}
	if s.config.GetHostname() != "" {
		env = append(env, "HOSTNAME="+s.config.GetHostname())
	}
	if len(r.config.GPUs) > 0 {
		env = append(env, "CUDA_VISIBLE_DEVICES=")
	}
	for _, kv := range own {
		env = append(env, kv.GetKey()+"="+string(kv.GetValue()))
	}
	last := map[string]int{}
	for i, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		last[name] = i
	}
	var unique []string
	for i, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); last[name] == i {
			unique = append(unique, entry)
		}
	}
	return unique
}

// user decides as which user the command runs.
func (r *Runtime) user(security *v1.LinuxContainerSecurityContext) (pid1.User, error) {
	wanted := security.GetRunAsUser()
	if name := security.GetRunAsUsername(); name != "" {
		u, err := user.Lookup(name)
		if err != nil {
			return pid1.User{}, fmt.Errorf("looking up user %q: %w", name, err)
		}
		uid, _ := strconv.ParseInt(u.Uid, 10, 64)
		wanted = &v1.Int64Value{Value: uid}
	}
	if me := r.config.User; me != nil {
		if wanted != nil && wanted.GetValue() != int64(me.UID) {
			return pid1.User{}, fmt.Errorf("runAsUser %d is not possible: the local cluster runs as the ordinary user %d",
				wanted.GetValue(), me.UID)
		}
		return pid1.User{UID: me.UID, GID: me.GID, Mapped: true}, nil
	}
	who := pid1.User{UID: uint32(wanted.GetValue())}
	member := security.GetSupplementalGroupsPolicy() == v1.SupplementalGroupsPolicy_Merge
	if u, err := user.LookupId(strconv.Itoa(int(who.UID))); err == nil && wanted != nil {
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		who.GID = uint32(gid)
		if ids, err := u.GroupIds(); err == nil && member {
			for _, id := range ids {
				group, _ := strconv.ParseUint(id, 10, 32)
				who.Groups = append(who.Groups, uint32(group))
			}
		}
	}
	if group := security.GetRunAsGroup(); group != nil {
		who.GID = uint32(group.GetValue())
	}
	for _, group := range security.GetSupplementalGroups() {
		who.Groups = append(who.Groups, uint32(group))
	}
	return who, nil
}
