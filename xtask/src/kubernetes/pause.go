// The first process of a pod: holds its namespaces, and buries whom nobody else does.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is the tag of its image; the linker sets it.
var version = "unknown"

func main() {
	// kubeadm's upgrade asks so whether pods run at all.
	if len(os.Args) > 1 && os.Args[1] == "-v" {
		fmt.Println("pause", version)
		return
	}
	told := make(chan os.Signal, 16)
	signal.Notify(told, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for is := range told {
		if is != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && err != syscall.EINTR {
				break
			}
		}
	}
}
