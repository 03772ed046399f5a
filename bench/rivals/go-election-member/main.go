// A member that campaigns for every partition with Go's concurrency.Election, all on one session, as
// etcd's documentation shows. member-side.ts describes the lines that it writes and reads.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
	"golang.org/x/sys/unix"
)

const (
	tick     = 10 * time.Millisecond
	lookStep = 500 * time.Millisecond
	// More at once from all members, and etcd refuses some of them; those try again.
	wave     = 100
	waveStep = 50 * time.Millisecond
	again    = 200 * time.Millisecond
)

type task struct {
	Store      string `json:"store"`
	Prefix     string `json:"prefix"`
	Member     string `json:"member"`
	Place      int    `json:"place"`
	Members    int    `json:"members"`
	Partitions int    `json:"partitions"`
	LeaseTtlMs int    `json:"leaseTtlMs"`
}

// Holder keeps what this member believes, and says so.
type holder struct {
	sync.Mutex
	partitions []string
	tickMs     float64
}

func (one *holder) held(partition int) {
	one.Lock()
	defer one.Unlock()
	text := fmt.Sprint(partition)
	one.partitions = append(one.partitions, text)
	fmt.Printf("+ %.3f %s\n", machineMs(), text)
}

// Follow admits work, as a tick, until the session is done; then everything is lost.
func (one *holder) follow(session *concurrency.Session) {
	for {
		select {
		case <-session.Done():
			one.Lock()
			if len(one.partitions) > 0 {
				fmt.Printf("- %.3f %s\n", one.tickMs, strings.Join(one.partitions, " "))
			}
			one.partitions = nil
			one.Unlock()
			return
		case <-time.After(tick):
			one.Lock()
			one.tickMs = machineMs()
			one.Unlock()
		}
	}
}

func main() {
	var to task
	if err := json.Unmarshal([]byte(os.Args[len(os.Args)-1]), &to); err != nil {
		fail(err)
	}
	words := listen()
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   strings.Split(to.Store, ","),
		DialTimeout: 10 * time.Second,
	})
	if err != nil {
		fail(err)
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(to.LeaseTtlMs/1000))
	if err != nil {
		fail(err)
	}
	believed := &holder{}
	go believed.follow(session)
	fmt.Println("ready")
	<-words["begin"]
	campaign(session, to, believed, true)
	<-words["standby"]
	campaign(session, to, believed, false)
	standBy(client, to)
	select {}
}

// Campaign runs one campaign for each of its own partitions, or for each of the others.
func campaign(session *concurrency.Session, to task, believed *holder, own bool) {
	started := 0
	for partition := 0; partition < to.Partitions; partition++ {
		if (partition%to.Members == to.Place) != own {
			continue
		}
		if started > 0 && started%wave == 0 {
			time.Sleep(waveStep)
		}
		started++
		go func(partition int) {
			name := fmt.Sprintf("%selection/%d", to.Prefix, partition)
			election := concurrency.NewElection(session, name)
			for {
				err := election.Campaign(context.Background(), to.Member)
				if err == nil {
					believed.held(partition)
					return
				}
				fmt.Println("!", strings.ReplaceAll(err.Error(), "\n", " "))
				time.Sleep(again)
			}
		}(partition)
	}
}

// StandBy waits until every member's every campaign has its key.
func standBy(client *clientv3.Client, to task) {
	wanted := int64(to.Partitions * to.Members)
	for {
		all, err := client.Get(context.Background(), to.Prefix,
			clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err == nil && all.Count >= wanted {
			fmt.Println("standing")
			return
		}
		time.Sleep(lookStep)
	}
}

// Listen reads the words that are said to this member, and ends it when its input ends.
func listen() map[string]chan struct{} {
	words := map[string]chan struct{}{"begin": make(chan struct{}), "standby": make(chan struct{})}
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			close(words[lines.Text()])
		}
		os.Exit(0)
	}()
	return words
}

// MachineMs is the clock that all processes of this machine share.
func machineMs() float64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		fail(err)
	}
	return float64(now.Nano()) / 1e6
}

func fail(err error) {
	fmt.Println("!", strings.ReplaceAll(err.Error(), "\n", " "))
	os.Exit(1)
}
