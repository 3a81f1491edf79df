package client_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"hookglass/client"
)

// A test of a service: it has something sent, and waits for what arrives.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	hookglass, err := client.New("https://hooks.example.com", os.Getenv("HOOKGLASS_TOKEN"))
	if err != nil {
		log.Fatal(err)
	}
	// Here your service is made to send; what it sent in the last ten seconds counts, too. Only senders that hookglass
	// knows have an EventType, so this looks into the body.
	for event, err := range hookglass.Since(ctx, "orders", client.Filter{Query: "body./type:order.paid"}, "10s", nil) {
		if err != nil {
			log.Fatal(err)
		}
		whole, err := hookglass.Request(ctx, "orders", event.ID)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(whole.Method, whole.Path, whole.SignatureStatus)
		break
	}
}
