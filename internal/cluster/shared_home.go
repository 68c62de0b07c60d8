package cluster

import (
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// sharedFileSystems are the types of file systems that several machines may have mounted at once, by what statfs calls them. Those
// without a name in package unix: Lustre, GPFS, BeeGFS, GFS2, PanFS, SMB2. FUSE is sshfs or GlusterFS as a rule.
var sharedFileSystems = []uint32{
	unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, 0xFE534D42, unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC,
	unix.CODA_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC, 0x0BD00BD0, 0x47504653, 0x19830326, 0x01161970, 0xAAD7AAEA,
}

// DirOfThisHost is where a directory's content goes that must not be shared by machines: into a folder named after this one, if the
// directory is on a file system that may be shared.
func DirOfThisHost(dir string) string {
	var s unix.Statfs_t
	at := dir
	for unix.Statfs(at, &s) != nil && at != filepath.Dir(at) {
		at = filepath.Dir(at) // what does not exist yet will be on the file system of its parent
	}
	host, _ := os.Hostname()
	return dirOfHost(dir, host, uint32(s.Type))
}

func dirOfHost(dir, host string, fileSystem uint32) string {
	if host == "" || !slices.Contains(sharedFileSystems, fileSystem) {
		return dir
	}
	return filepath.Join(dir, "hosts", host)
}
