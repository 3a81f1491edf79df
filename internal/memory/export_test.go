package memory

var (
	RoomWithin = room
	HeapWithin = heap
	Usable     = usable
)
