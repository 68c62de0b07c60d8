/* A token goes round a ring of processes, which add their rank to it. Each lap must end with the sum of all ranks. The laps are
 * counted in a file, so that another attempt goes on where the one before ended.
 *
 *   ring LAPS MILLISECONDS FILE    so many laps, with a pause after each, counted in FILE
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int laps_in(const char *file) {
	int laps = 0;
	FILE *f = fopen(file, "r");
	if (f) {
		if (fscanf(f, "%d", &laps) != 1)
			laps = 0;
		fclose(f);
	}
	return laps;
}

static void save(const char *file, int laps) {
	FILE *f = fopen(file, "w");
	if (f) {
		fprintf(f, "%d\n", laps);
		fclose(f);
	}
}

int main(int argc, char **argv) {
	int rank, size, host_length, token, lap;
	char host[MPI_MAX_PROCESSOR_NAME];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_processor_name(host, &host_length);
	int laps = argc > 1 ? atoi(argv[1]) : 3;
	int pause = argc > 2 ? atoi(argv[2]) : 0;
	const char *file = argc > 3 ? argv[3] : "/dev/null";
	const char *attempt = getenv("TRAINYARD_ATTEMPT");

	lap = rank == 0 ? laps_in(file) : 0;
	MPI_Bcast(&lap, 1, MPI_INT, 0, MPI_COMM_WORLD);
	printf("rank %d of %d on %s, attempt %s, begins with lap %d\n", rank, size, host, attempt ? attempt : "?", lap);
	fflush(stdout);
	for (; lap < laps; lap++) {
		int next = (rank + 1) % size, before = (rank + size - 1) % size;
		if (rank == 0) {
			token = 0;
			MPI_Send(&token, 1, MPI_INT, next, lap, MPI_COMM_WORLD);
			MPI_Recv(&token, 1, MPI_INT, before, lap, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (token != size * (size - 1) / 2)
				MPI_Abort(MPI_COMM_WORLD, 3);
			printf("lap %d: the token is %d\n", lap, token);
			fflush(stdout);
			save(file, lap + 1);
		} else {
			MPI_Recv(&token, 1, MPI_INT, before, lap, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			token += rank;
			MPI_Send(&token, 1, MPI_INT, next, lap, MPI_COMM_WORLD);
		}
		usleep(pause * 1000);
	}
	if (rank == 0)
		printf("done: %d laps of %d\n", lap, size);
	MPI_Finalize();
	return 0;
}
