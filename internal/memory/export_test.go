package memory

var (
	RoomWithin = room
	HeapWithin = heap
	Limit      = limit
)
