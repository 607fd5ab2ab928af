module goshmem

go 1.26
