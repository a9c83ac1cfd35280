from .file_scenarios import FIGURES as FIGURES, FileJob as FileJob, FileScenario as FileScenario, play_job as play_job
from .suite_reader import FileSuite as FileSuite, load_suite as load_suite
