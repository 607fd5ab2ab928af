package state

// Layout of kernels/include/device/shmem_state.h; layout_test.go compares every number with what a C compiler says of it.
const (
	maxPEs   = 16384
	maxTeams = 2048
	magic    = 0x676f73686d656d31

	fixedAddress = 0x17FFBE000000
	fixedBytes   = 65536

	line          = 64
	teamSyncBytes = 2560  // GSHMEM_TEAM_SYNC_BYTES
	coreSyncBytes = 18432 // GSHMEM_CORE_SYNC_BYTES
	teamStopBytes = 128   // GSHMEM_TEAM_STOP_BYTES

	topoMTE = 1
)

// Offsets in gshmem_device_state_t, and its size.
const (
	stVersion         = 0
	stMe              = 4
	stN               = 8
	stHeapBase        = 16
	stHostBase        = 24
	stPeers           = 32 // p2p_device_heap_base
	stHostPeers       = 56 // p2p_host_heap_base
	stTopo            = 80 // maxPEs bytes
	stHeapSize        = 16464
	stTeams           = 16472 // maxTeams addresses
	stSyncPool        = 32856
	stSyncCounter     = 32864
	stCoreSyncPool    = 32872
	stCoreSyncCounter = 32880
	stInitialized     = 32888
	stCreated         = 32889
	stMTE             = 32896 // four gshmem_ub_config_t: MTE, SDMA, RDMA, UDMA
	stMagic           = 32992
	stAbort           = 33000
	stHostSize        = 33016
	stHostAddress     = 33024
	stBytes           = 33032
)

// Offsets in gshmem_ub_config_t, and its size.
const (
	ubAt    = 0
	ubSize  = 8
	ubEvent = 12
	ubBytes = 16
)

// Offsets in gshmem_team_state_t, and its size.
const (
	tmMe       = 0
	tmStart    = 4
	tmStride   = 8
	tmN        = 12
	tmIndex    = 16
	tmCoreSync = 40
	tmStop     = 48
	tmMapping  = 88 // maxPEs world PEs, then maxPEs ranks
	tmBytes    = 131160
)
