package contest

import (
	"encoding/json"
	"fmt"
)

// Task is the message of every library: a number, and a text made from it. The text shows when a
// body went to another task.
type Task struct {
	I int    `json:"i"`
	P string `json:"p"`
}

// NewTask makes the task with the given number.
func NewTask(i int) Task {
	text := make([]byte, 0, len(pad)+16)
	text = append(text, pad...)
	mixed := mix(uint64(i))
	for shift := 60; shift >= 0; shift -= 4 {
		text = append(text, digits[mixed>>shift&15])
	}
	return Task{I: i, P: string(text)}
}

// Tasks makes the tasks with the numbers from from to to−1.
func Tasks(from, to int) []Task {
	list := make([]Task, 0, to-from)
	for i := from; i < to; i++ {
		list = append(list, NewTask(i))
	}
	return list
}

// Decode reads an encoded task.
func Decode(body []byte) (Task, error) {
	var t Task
	if err := json.Unmarshal(body, &t); err != nil {
		return Task{}, fmt.Errorf("decode task: %w", err)
	}
	return t, nil
}

const digits = "0123456789abcdef"

// pad is the constant part of a task's text: an encoded task has about 200 bytes.
const pad = "Everything that can fail is a message that a worker has claimed; a claim is a lease with an end, " +
	"and what cannot succeed becomes a letter with its whole story. ok"

// mix spreads a number over 64 bits (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
