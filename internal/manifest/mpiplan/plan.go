// Package mpiplan is what the operator and package mpiagent agree on: where the pods of an MPI job have their files, what an init
// container prepares there, and the keys by which the pods recognise each other.
package mpiplan

import (
	"flag"
	"fmt"
	"strings"
)

// Name is the name of the program. An executable that is called by this name is the agent.
const Name = "trainyard-agent"

// Where the containers of a job find what the agent needs.
const (
	// Dir is a folder of the pod, which the init container prepares.
	Dir = "/etc/mpi"
	// KeysDir has the job's keys, from its Secret.
	KeysDir = "/etc/mpi-keys"
	// Program is the agent itself, RemoteShell what mpirun calls to start a process on another host.
	Program     = Dir + "/" + Name
	RemoteShell = Dir + "/kubexec.sh"
	// Hostfile lists the hosts, DiscoverHosts is a script that prints those that answer.
	Hostfile      = Dir + "/hostfile"
	DiscoverHosts = Dir + "/discover_hosts.sh"
	// ServiceFile has the name of the job's Service, in which bare host names are found.
	ServiceFile = "service"
)

// Port is where the server listens. It is the port of mpi-operator's images, so that their OpenSSH finds our server and our client
// finds their sshd.
const Port = 2222

// Plan is what an init container prepares.
type Plan struct {
	// Workers is the number of Workers, Slots how many processes each may have.
	Workers, Slots int32
	// Host is the name of a host in the host file, in which %d stands for its index. Launcher is that of the Launcher where it has
	// processes, too; empty otherwise.
	Host, Launcher string
	// Service is the domain in which the names of hosts without a dot are found.
	Service string
	// Colon writes hosts as "name:slots", as Hydra reads them, instead of Open MPI's "name slots=slots".
	Colon bool
	// Wait waits until each Worker answers: with Agent the server of this package, without any SSH server.
	Wait, Agent bool
}

// Args are the arguments that make the agent carry out the plan.
func (p Plan) Args() []string {
	args := []string{
		"prepare", fmt.Sprintf("-workers=%d", p.Workers), fmt.Sprintf("-slots=%d", p.Slots), "-host=" + p.Host, "-service=" + p.Service,
	}
	if p.Launcher != "" {
		args = append(args, "-launcher="+p.Launcher)
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"-colon", p.Colon}, {"-wait", p.Wait}, {"-agent", p.Agent}} {
		if flag.set {
			args = append(args, flag.name)
		}
	}
	return args
}

// Hosts are the names of the Workers.
func (p Plan) Hosts() []string {
	var all []string
	for i := range p.Workers {
		all = append(all, strings.ReplaceAll(p.Host, "%d", fmt.Sprint(i)))
	}
	return all
}

// HostFile is the file from which mpirun reads the hosts.
func (p Plan) HostFile() string {
	hosts := p.Hosts()
	if p.Launcher != "" {
		hosts = append([]string{p.Launcher}, hosts...)
	}
	var text strings.Builder
	for _, host := range hosts {
		if p.Colon {
			fmt.Fprintf(&text, "%s:%d\n", host, p.Slots)
		} else {
			fmt.Fprintf(&text, "%s slots=%d\n", host, p.Slots)
		}
	}
	return text.String()
}

// Parse reads the arguments that Args writes.
func Parse(args []string) (Plan, error) {
	var p Plan
	var workers, slots int
	flags := flag.NewFlagSet("prepare", flag.ContinueOnError)
	flags.IntVar(&workers, "workers", 0, "how many Workers there are")
	flags.IntVar(&slots, "slots", 1, "how many processes each may have")
	flags.StringVar(&p.Host, "host", "", "the name of a Worker, with %d for its index")
	flags.StringVar(&p.Launcher, "launcher", "", "the name of the Launcher, if it has processes, too")
	flags.StringVar(&p.Service, "service", "", "the domain of names without a dot")
	flags.BoolVar(&p.Colon, "colon", false, "write hosts as Hydra reads them")
	flags.BoolVar(&p.Wait, "wait", false, "wait until each Worker answers")
	flags.BoolVar(&p.Agent, "agent", false, "the Workers run this program's server")
	err := flags.Parse(args)
	p.Workers, p.Slots = int32(workers), int32(slots)
	return p, err
}
