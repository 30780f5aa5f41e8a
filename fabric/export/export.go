// Package export writes a network as files of container engines: switches and
// hosts are containers of this project's images, joined by the links of the
// network.
package export

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gswitch/fabric"
	"gswitch/wholefile"
)

// Lab is what containers are to be.
type Lab struct {
	Name  string // of the lab, as a container's name may be (fabric.CheckName)
	About string // a line for readers of the files
	Nodes []Node
	Links []Link
}

// Node is a container.
type Node struct {
	Name    string
	Image   string
	Command []string // of the image's program
	Root    bool     // the container's user is root, whatever the image says
	// Files are for this container alone, read only.
	Files []File
	// Mounts are directories beside the written files, by where they are in the
	// container. Those that begin with a dot are the directory itself.
	Mounts []Mount
	// Kernel is what a host with its kernel's own stack gets once its links are there,
	// in the container's network namespace.
	Kernel []string
}

// File has a place in the container.
type File struct {
	Path string
	Text []byte
}

// Mount makes a directory of this machine one of the container.
type Mount struct {
	Dir, Path string
	Writable  bool
}

// Link joins two interfaces. MTU is that of both, in bytes.
type Link struct {
	A, B End
	MTU  int
}

// End is an interface of a node.
type End struct{ Node, Interface string }

// Interface is what the port of a node is called in its container. eth0 is the
// interface by which container engines manage it.
func Interface(port int) string { return fmt.Sprintf("eth%d", port+1) }

// links are those of a topology, with an MTU of at least least.
func links(t *fabric.Topology, least int) (v []Link) {
	for i := range t.Links {
		l := &t.Links[i]
		v = append(v, Link{A: end(t, l.A), B: end(t, l.B), MTU: max(l.MTU, least)})
	}
	return v
}

func end(t *fabric.Topology, e fabric.End) End { return End{t.Nodes[e.Node].Name, Interface(e.Port)} }

// Formats are what Write can write, each with what it is.
var Formats = []struct {
	Name, Title string
	write       func(*Lab) ([]File, error)
}{
	{"containerlab", "a topology of containerlab", (*Lab).containerlab},
	{"clabernetes", "a topology of clabernetes, which runs containerlab's on Kubernetes", (*Lab).clabernetes},
	{"compose", "a project of docker compose, and a script that makes the links", (*Lab).compose},
}

// Write writes the files of a format into a directory, which it makes. It returns
// their paths, the one to begin with first. Files that are there already are an
// error unless replace says otherwise.
func Write(l *Lab, format, dir string, replace bool) (paths []string, err error) {
	for _, f := range Formats {
		if f.Name != format {
			continue
		}
		files, err := f.write(l)
		if err != nil {
			return nil, err
		}
		return store(files, l, dir, replace)
	}
	return nil, fmt.Errorf("%q is not a format: there are %s", format, strings.Join(Names(), ", "))
}

// Names are those of the formats.
func Names() (v []string) {
	for _, f := range Formats {
		v = append(v, f.Name)
	}
	return v
}

// store writes files. Where one cannot be written those that were made before it go again.
func store(files []File, l *Lab, dir string, replace bool) (paths []string, err error) {
	for _, f := range files {
		path := filepath.Join(dir, f.Path)
		if _, err := os.Lstat(path); err == nil && !replace {
			return nil, fmt.Errorf("%s is there already: name another directory, or replace it (--force)", path)
		}
	}
	defer func() {
		if err != nil && !replace {
			for _, p := range paths {
				err = errors.Join(err, os.Remove(p))
			}
			paths = nil
		}
	}()
	for _, n := range l.Nodes {
		for _, m := range n.Mounts {
			if err := os.MkdirAll(filepath.Join(dir, m.Dir), 0o755); err != nil {
				return paths, err
			}
		}
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return paths, err
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(path, ".sh") {
			mode = 0o755
		}
		if err := wholefile.WriteBytes(path, mode, f.Text); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// beside are the files of all nodes, each in the directory of the lab's name: what
// they are called there, by node and index.
func (l *Lab) beside() (files []File) {
	for i := range l.Nodes {
		for _, f := range l.Nodes[i].Files {
			files = append(files, File{Path: l.path(&l.Nodes[i], f), Text: f.Text})
		}
	}
	return files
}

func (l *Lab) path(n *Node, f File) string {
	return filepath.Join(l.Name, n.Name+filepath.Ext(f.Path))
}
