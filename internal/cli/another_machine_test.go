package cli_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// onAnotherMachine starts a command as on a machine with a network and mounts of its own, which prepare sets up.
func onAnotherMachine(t *testing.T, cmd *exec.Cmd, prepare func() error) {
	t.Helper()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends, and with it the machine
		started <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS); err != nil {
				return err
			}
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return err
			}
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return err
			}
			if err := errors.Join(netlink.LinkSetUp(lo), prepare()); err != nil {
				return err
			}
			return cmd.Start()
		}()
		select {} // its listeners stay, and its child, which ends with the thread that started it
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
}

// addresses of the other machine.
const (
	metadata = "169.254.77.77" // as clouds have it for credentials; not the one of a real cloud
	silent   = "192.0.2.9"     // an address that never answers
)

// networkOfAnInstance is that of a cloud instance: a link-local address that serves HTTP, a name server with a search list, and an
// address that never answers.
func networkOfAnInstance() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	cable := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "nobody"}
	if err := netlink.LinkAdd(cable); err != nil {
		return err
	}
	peer, err := netlink.LinkByName("nobody")
	if err != nil {
		return err
	}
	for _, link := range []netlink.Link{cable, peer} {
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	for address, link := range map[string]netlink.Link{metadata + "/32": lo, "192.0.2.1/24": cable} {
		parsed, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(link, parsed); err != nil {
			return err
		}
	}
	err = netlink.NeighAdd(&netlink.Neigh{LinkIndex: cable.Attrs().Index, State: netlink.NUD_PERMANENT, IP: net.ParseIP(silent),
		HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", metadata+":80")
	if err != nil {
		return err
	}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "credentials") })) //nolint:errcheck // ends with the test
	questions, err := net.ListenPacket("udp4", "127.0.0.1:53")
	if err != nil {
		return err
	}
	names := &dns.Server{PacketConn: questions, Handler: dns.HandlerFunc(answerNames)}
	go names.ActivateAndServe() //nolint:errcheck // ends with the test
	return nil
}

// answerNames knows one name, store.corp.example.
func answerNames(w dns.ResponseWriter, question *dns.Msg) {
	answer := new(dns.Msg).SetReply(question)
	if q := question.Question[0]; q.Name != "store.corp.example." {
		answer.Rcode = dns.RcodeNameError
	} else if q.Qtype == dns.TypeA {
		answer.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.ParseIP(metadata)}}
	}
	_ = w.WriteMsg(answer)
}

// Pods reach what the machine reaches, and a run says what the machine does not let its cluster do.
func TestPodsReachWhatTheMachineReaches(t *testing.T) {
	t.Parallel()
	d, resolver := desk{&local.World{TB: t}}, filepath.Join(t.TempDir(), "resolv.conf")
	write(t, resolver, "nameserver 127.0.0.1\nsearch corp.example\n")
	training := `
import socket, urllib.request
waiting = [socket.socket() for _ in range(50)]
for s in waiting:
    s.setblocking(False)
    s.connect_ex(("` + silent + `", 80))
# Shorter than the time for which silent ones wait: they must not hold up others.
print("by its address:", urllib.request.urlopen("http://` + metadata + `/", timeout=15).read().decode())
print("by a short name:", urllib.request.urlopen("http://store/", timeout=100).read().decode())`
	cmd := typesIn([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()},
		"run", "--data-dir="+t.TempDir(), "--name=instance", "--", "python3", "-u", "-c", training)
	said := &transcript{}
	cmd.Stdout, cmd.Stderr = said, said
	onAnotherMachine(t, cmd, func() error {
		if err := unix.Mount(resolver, "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
			return err
		}
		if err := unix.Mount("none", "/sys/fs/cgroup", "tmpfs", 0, ""); err != nil {
			return err
		}
		return networkOfAnInstance()
	})
	_ = cmd.Wait()
	d.expect(local.Outcome{Stdout: said.String(), Code: cmd.ProcessState.ExitCode()}, 0,
		`^Note: memory and CPU limits are not enforced: `, `^worker-0 \| by its address: credentials$`, `^worker-0 \| by a short name: credentials$`)
}

// Root of a hardened container has no right to administer the system, but may have user namespaces.
func TestRootWithoutTheRightToAdministerTheSystem(t *testing.T) {
	t.Parallel()
	d, said := desk{&local.World{TB: t}}, &transcript{}
	cmd := typesIn([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, "run", "--data-dir="+t.TempDir(), "--", "sh", "-c", "echo I am $(id -u)")
	cmd.Stdout, cmd.Stderr = said, said
	onAnotherMachine(t, cmd, func() error { return unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0) })
	_ = cmd.Wait()
	d.expect(local.Outcome{Stdout: said.String(), Code: cmd.ProcessState.ExitCode()}, 0, `^worker-0 \| I am 0$`)
}

// Two machines share a home directory: the second one does not wait for the first, and is told which one it is.
func TestASharedDataDirectoryNamesItsHost(t *testing.T) {
	t.Parallel()
	d, dir := desk{&local.World{TB: t}}, t.TempDir()
	up := local.StartUp(t, dir).Ready()
	host, _ := os.Hostname()
	bootID := filepath.Join(t.TempDir(), "boot_id")
	write(t, bootID, "9be2fe9d-5a27-4b0b-8d6b-0e2b1c1b4f5e\n")
	for _, verb := range [][]string{{"run", "--", "true"}, {"up"}, {"down"}, {"status"}} {
		var out, errOut strings.Builder
		cmd := typesIn(os.Environ(), append([]string{verb[0], "--data-dir=" + dir}, verb[1:]...)...)
		cmd.Stdout, cmd.Stderr = &out, &errOut
		onAnotherMachine(t, cmd, func() error {
			return errors.Join(unix.Sethostname([]byte("another")), unix.Mount(bootID, "/proc/sys/kernel/random/boot_id", "", unix.MS_BIND, ""))
		})
		_ = cmd.Wait()
		d.refuses(local.Outcome{Stdout: out.String(), Stderr: errOut.String(), Code: cmd.ProcessState.ExitCode()}, 1,
			fmt.Sprintf("the local cluster of %s runs on host %s, as process %d: use it there, or name another directory with --data-dir$", dir, host, up.Pid()))
	}
	d.expect(finish(d, local.CLI("status", "--data-dir="+dir)), 0, `^The local cluster has been running`)
}
