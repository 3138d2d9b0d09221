/* An MPI program that does nothing. Started without a launcher, it is the floor: what the library takes for itself. */
#include <mpi.h>

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	return MPI_Finalize();
}
